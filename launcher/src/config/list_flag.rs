//! Flags that can be given several times, each time with several values: clap has none, so they are written by hand, once.

/// Makes clap's flag of a list type around a `Vec`: its name, its group's name, by which clap knows whether it was given, and the rest of it.
macro_rules! list_flag {
    ($list:ident, $flag:literal, $group:literal, $described:expr) => {
        impl clap::Args for $list {
            fn group_id() -> Option<clap::Id> {
                Some(clap::Id::from($group))
            }

            fn augment_args(command: clap::Command) -> clap::Command {
                let flag = clap::Arg::new($flag)
                    .long($flag)
                    .action(clap::ArgAction::Append)
                    .value_parser($crate::config::parsed::<$list>());
                let described: fn(clap::Arg) -> clap::Arg = $described;
                command.arg(described(flag)).group(clap::ArgGroup::new($group).arg($flag).multiple(true))
            }

            fn augment_args_for_update(command: clap::Command) -> clap::Command {
                Self::augment_args(command)
            }
        }

        impl clap::FromArgMatches for $list {
            fn from_arg_matches(matches: &clap::ArgMatches) -> Result<Self, clap::Error> {
                let given = matches.get_many::<$list>($flag).unwrap_or_default();
                Ok(Self(given.flat_map(|list| list.0.clone()).collect()))
            }

            fn update_from_arg_matches(&mut self, matches: &clap::ArgMatches) -> Result<(), clap::Error> {
                *self = Self::from_arg_matches(matches)?;
                Ok(())
            }
        }
    };
}
pub(super) use list_flag;
