//! Draws the cards and the index page of a folder of surveys.

use crate::config::UsageError;
use analysis::document::{Document, write_atomically};
use analysis::experiment::Survey;
use analysis::experiment::survey::{survey_index, svg_card, text_card};
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// Draws the card of each survey in a folder of surveys, and the index page. Returns how many
/// surveys there are.
pub fn write(folder: &Path) -> Result<usize> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot list {} (--index)", folder.display()))?;
    let mut folders: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    folders.retain(|path| path.join(Survey::FILE).exists());
    folders.sort();
    if folders.is_empty() {
        let why = format!("no folder in it has a {}; copy one there first", Survey::FILE);
        return Err(UsageError(format!("--index {}: {why}", folder.display())).into());
    }
    let mut surveys = Vec::new();
    for path in folders {
        let survey = Survey::read(&path)?;
        save_cards(&survey, &path)?;
        surveys.push((path.file_name().unwrap_or_default().to_string_lossy().into_owned(), survey));
    }
    let index = survey_index(&surveys);
    write_atomically(&folder.join("README.md"), index.markdown.as_bytes())?;
    write_atomically(&folder.join("index.svg"), index.svg.as_bytes())?;
    Ok(surveys.len())
}

pub fn save_cards(survey: &Survey, folder: &Path) -> Result<()> {
    write_atomically(&folder.join("card.txt"), text_card(survey).as_bytes())?;
    Ok(write_atomically(&folder.join("card.svg"), svg_card(survey).as_bytes())?)
}
