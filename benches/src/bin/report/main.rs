//! Puts what parts of the measurements came to into the one report: the list for programs, the tables of the page, the drawings.
#![allow(clippy::print_stdout, reason = "a report is printed")]

use clap::Parser;
use semel_benches::{machine, plot, results, table};
use std::error::Error;
use std::fs;
use std::path::PathBuf;

#[derive(Parser)]
#[command(about = "Puts measurements into results.json, RESULTS.md and plots/")]
struct Arguments {
    /// A part that was measured, and the file that it left: `gateway on SQLite=target/bench/gateway-sqlite.json`. Its entries replace
    /// those that the part had. Without any, the page and the drawings are rebuilt from what there is, and all of it is printed.
    #[arg(long = "part", value_name = "NAME=FILE", value_parser = part)]
    parts: Vec<(String, PathBuf)>,
    /// Where the report is.
    #[arg(long, default_value = "benches")]
    into: PathBuf,
    /// Where the files of the measurements were: the machine is described with this directory's disk.
    #[arg(long, default_value = "target/bench")]
    directory: PathBuf,
}

fn part(text: &str) -> Result<(String, PathBuf), String> {
    let (name, file) = text.split_once('=').ok_or("a name, an equals sign and a file are wanted")?;
    Ok((name.to_owned(), file.into()))
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    fs::create_dir_all(&arguments.into)?;
    let list = arguments.into.join("results.json");
    let mut entries = results::read(&list)?;
    for (name, file) in &arguments.parts {
        let measured = results::read(file)?;
        if measured.is_empty() {
            return Err(format!("{} holds no measurement of {name}", file.display()).into());
        }
        results::replace(&mut entries, name, measured);
    }
    results::write(&list, &entries)?;

    let page = arguments.into.join("RESULTS.md");
    let mut text = if page.exists() { fs::read_to_string(&page)? } else { String::new() };
    if !arguments.parts.is_empty() {
        text = table::put(&text, "machine", &machine::describe(&arguments.directory)?);
    }
    for (name, file) in &arguments.parts {
        // Some parts leave an account of the processors' time beside what they compared.
        if let Ok(profile) = fs::read_to_string(file.with_extension("md")) {
            text = table::put(&text, &format!("profile of {name}"), &profile);
        }
    }
    fs::write(&page, table::put(&text, "results", &table::of(&entries)))?;
    let plots = arguments.into.join("plots");
    fs::create_dir_all(&plots)?;
    for (name, drawing) in plot::all(&entries) {
        fs::write(plots.join(name), drawing)?;
    }

    if arguments.parts.is_empty() {
        println!("{}", table::for_terminal(&entries));
    }
    let missed: Vec<_> = entries.iter().filter(|entry| entry.is_missed()).collect();
    for entry in &missed {
        println!("missed: {} is {:.2}, and has to be {}", entry.name, entry.ratio, entry.bar);
    }
    println!("{} comparisons, {} bars missed: {}", entries.len(), missed.len(), page.display());
    Ok(())
}
