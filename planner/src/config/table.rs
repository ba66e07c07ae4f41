//! The macro that defines the table of settings in [`super::settings`].

/// Defines [`Settings`] and its table: `KEY "PLACEHOLDER": TYPE = DEFAULT, in RANGE;` below a
/// heading of the help.
macro_rules! settings {
    ($($heading:literal { $(
        $(#[doc = $doc:literal])+
        $key:ident $placeholder:literal: $type:ty $(= $default:expr)? $(=> $implied:expr)? $(, in $range:expr)?;
    )+ })+) => {
        /// The settings of a run, given on the command line or under the same names in the config
        /// file.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Settings { $($(
            $(#[doc = $doc])+
            pub $key: Option<$type>,
        )+)+ }

        impl Settings {
            /// Names of all settings, as keys of the config file. Flags have `-` for `_`.
            pub const KEYS: &'static [&'static str] = &[$($(stringify!($key)),+),+];

            /// The definitions of all settings of a run, in the order of the help.
            pub const TABLE: &'static [Setting] = &[$($( Setting {
                key: stringify!($key),
                heading: $heading,
                placeholder: $placeholder,
                help: concat!($($doc),+),
                is_list: <$type as SettingValue>::IS_LIST,
                flag: <$type as SettingValue>::flag,
                default: || None $(.or(Some(<$type as SettingValue>::text(&$default))))? $(.or(Some(<$type as SettingValue>::text(&$implied))))?,
                set: |settings, text| SettingValue::parse(text).map(|value| settings.$key = Some(value)),
                read: |settings, matches| {
                    let given = matches.get_many::<$type>(stringify!($key)).unwrap_or_default();
                    settings.$key = given.cloned().reduce(SettingValue::merge);
                },
                text: |settings| settings.$key.as_ref().map(SettingValue::text),
                clear: |settings| settings.$key = None,
                fill: |settings| { let _ = settings; $(settings.$key.get_or_insert_with(|| $default);)? },
                take_open: |settings, below| {
                    if settings.$key.is_none() {
                        settings.$key.clone_from(&below.$key);
                    }
                },
                check: |settings| {
                    let range: Option<std::ops::RangeInclusive<u64>> = None $(.or(Some($range)))?;
                    settings.$key.as_ref().map_or(Ok(()), |value| SettingValue::check(value, range))
                },
                #[cfg(test)]
                any_text: <$type as SettingValue>::any_text,
            } ),+),+];

            $($(
                $(
                    #[doc = concat!("[`Self::", stringify!($key), "`], or its default.")]
                    pub fn $key(&self) -> $type {
                        self.$key.clone().unwrap_or_else(|| $default)
                    }
                )?
                $(
                    #[doc = concat!("[`Self::", stringify!($key), "`], or its default.")]
                    pub fn $key(&self) -> $type {
                        self.$key.clone().unwrap_or_else(|| $implied)
                    }
                )?
            )+)+
        }
    };
}
pub(super) use settings;
