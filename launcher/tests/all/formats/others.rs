//! The files that are no JSON documents: stamp logs, histograms, the config, a recorded flow.

use crate::html::fixtures::{evaluated, tailed};
use analysis::hlog;
use analysis::logfile::LogReader;
use launcher::config::{CONFIG_FILE, Settings};
use std::fs;
use std::path::Path;
use strategy::schedule::{DelayRange, Replay, replay};

/// A format: a whole file, its reader, and what is refused with which words.
struct Format {
    file: &'static str,
    bytes: Vec<u8>,
    read: fn(&Path) -> Result<(), String>,
    refused: Vec<(Vec<u8>, &'static str)>,
}

fn stamps(path: &Path) -> Result<(), String> {
    let mut log = LogReader::open(path, None).map_err(|error| error.to_string())?;
    while log.next_block().map_err(|error| error.to_string())?.is_some() {}
    Ok(())
}

fn histograms(path: &Path) -> Result<(), String> {
    match hlog::read(path.parent().unwrap()) {
        Ok(histograms) if histograms.is_empty() => Err(format!("{}: empty", path.display())),
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

fn config(path: &Path) -> Result<(), String> {
    Settings::read(path).map(drop).map_err(|error| error.to_string())
}

fn flow(path: &Path) -> Result<(), String> {
    let how = Replay {
        strategies: 2,
        venues: 2,
        delay: DelayRange { min_ns: 5_000_000, max_ns: 6_000_000 },
        seed: 1,
        speed: 1.0,
        orders: None,
    };
    replay(path, &how).map(drop).map_err(|error| error.to_string())
}

/// A change to the words of a log.
fn with_word(log: &[u8], word: usize, change: impl FnOnce(u64) -> u64) -> Vec<u8> {
    let mut bytes = log.to_vec();
    let place = &mut bytes[word * 8..word * 8 + 8];
    let value = change(u64::from_le_bytes(place.try_into().unwrap()));
    place.copy_from_slice(&value.to_le_bytes());
    bytes
}

fn formats() -> Vec<Format> {
    let (folder, _) = evaluated(&tailed(200));
    let file = |name: &str| fs::read(folder.path().join(name)).unwrap();
    let log = file("strategy-0.stamps");
    let hlog = file("histograms.hlog");
    let yaml = b"strategies: 2\nventures: 3\n".to_vec();
    let header = "time_us,sequence,op,order_id,side,type,tif,price_cents,qty_satoshi";
    let row = "5,1,new,7,B,limit,gtc,100,2000";
    vec![
        Format {
            file: "strategy-0.stamps",
            read: stamps,
            refused: vec![
                (with_word(&log, 0, |magic| magic ^ 1), "magic"),
                (with_word(&log, 1, |version| version + 1), "version"),
                (b"strategy-0 said nothing".to_vec(), "too short"),
            ],
            bytes: log,
        },
        Format {
            file: "histograms.hlog",
            read: histograms,
            refused: vec![
                (b"Tag=submit,0.0,1.0,1.0,*\n".to_vec(), "entry 1"),
                (Vec::new(), "no histogram"),
                (b"\xFF\xFE\xFD".to_vec(), "launcher report"),
            ],
            bytes: hlog,
        },
        Format {
            file: CONFIG_FILE,
            read: config,
            refused: vec![
                (yaml, "unknown key ventures: did you mean venues?"),
                (b"strategies: 2\nschema: bulkhead.config/2\n".to_vec(), "unknown key schema"),
                (b"strategies: \xFF\n".to_vec(), "UTF-8"),
            ],
            bytes: Settings { venues: Some(analysis::units::Count(3)), ..Settings::default() }
                .to_yaml()
                .into_bytes(),
        },
        Format {
            file: "flow.csv",
            read: flow,
            refused: vec![
                (format!("{header},colour\n{row},red\n").into_bytes(), "unknown column \"colour\""),
                (format!("{}\n", &header[8..]).into_bytes(), "no column time_us"),
                (format!("{header}\n{row},1\n").into_bytes(), "fields"),
                (format!("{header}\n").into_bytes(), "flow.csv"),
                (b"\xFF\xFE\n".to_vec(), "unknown column"),
            ],
            bytes: format!("{header}\n{row}\n").into_bytes(),
        },
    ]
}

#[test]
fn whole_files_are_read_and_others_refused_by_name() {
    for Format { file, bytes, read, refused } in formats() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(file);
        fs::write(&path, &bytes).unwrap();
        assert_eq!(read(&path), Ok(()), "{file}");
        for (bytes, words) in refused {
            fs::write(&path, bytes).unwrap();
            let error = read(&path).unwrap_err();
            assert!(error.contains(file) && error.contains(words), "{words}: {error}");
        }
        fs::remove_file(&path).unwrap();
        assert!(read(&path).unwrap_err().contains(file), "{file}");
    }
}

/// A file that is cut may be whole as far as it goes. It is read or refused by name, and nothing panics.
#[test]
fn files_that_are_cut_or_scribbled_on_are_read_or_refused_by_name() {
    for Format { file, bytes, read, .. } in formats() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(file);
        let mut refused = 0;
        let mut try_out = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            if let Err(error) = read(&path) {
                assert!(error.contains(file), "{error}");
                refused += 1;
            }
        };
        for cut in (0..bytes.len()).step_by(bytes.len() / 150 + 1) {
            try_out(&bytes[..cut]);
            let mut scribbled = bytes.clone();
            scribbled[cut] ^= 0xA5;
            try_out(&scribbled);
        }
        assert!(refused > 0, "{file}: nothing of this was refused");
    }
}
