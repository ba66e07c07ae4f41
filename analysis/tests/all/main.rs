//! Tests of analysis in one binary: pages and saved files of runs and experiments. No process is
//! started.
//!
//! | folder | what it tests |
//! |---|---|
//! | `html` | the pictures of runs and experiments |
//! | `formats` | every file that is read back: its keys, its versions, damage |

#[allow(dead_code, reason = "the tests of verdict use the rest")]
#[path = "../../../verdict/tests/all/common.rs"]
mod common;
#[path = "../../../verdict/tests/all/fixture/mod.rs"]
mod fixture;
mod formats;
mod html;
