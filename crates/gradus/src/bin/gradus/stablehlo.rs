//! `gradus stablehlo`: a program as text becomes StableHLO, and the other way round.

use gradus::prelude::*;
use gradus::stablehlo::{Accuracy, ExportOptions, Precision, import_file};

use super::{Answer, read};

/// Runs the command.
pub fn run(arguments: &[&str]) -> Answer {
    let (mut file, mut importing, mut options) = (None, false, ExportOptions::new());
    for argument in arguments {
        options = match *argument {
            "--import" => {
                importing = true;
                options
            }
            "--precision=highest" => options.precision(Precision::Highest),
            "--precision=high" => options.precision(Precision::High),
            "--precision=default" => options.precision(Precision::Default),
            "--accuracy=native" => options.accuracy(Accuracy::Native),
            "--accuracy=gradus" => options.accuracy(Accuracy::Gradus),
            flag if flag.starts_with("--") => return Err(format!("there is no option `{flag}` of `gradus stablehlo`")),
            path if file.is_none() => {
                file = Some(path);
                options
            }
            more => return Err(format!("one file is converted at a time, and `{more}` is a second one")),
        };
    }
    let Some(file) = file else { return Err("name a file".into()) };
    let fail = |e: Error| e.to_string();
    if importing {
        return import_file(file).map(|imported| imported.program().to_string()).map_err(fail);
    }
    let program: Program = read(file)?.parse().map_err(fail)?;
    options.export_program(&program).map_err(fail)
}
