//! The other side: pgbench, which prepares the two statements and runs them on each connection, one request at a time or many at once.

use crate::statements::Different;
use semel_testing::servers::Cluster;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The hash is random, as ours is; operation ids rise with time, as ours do.
const DIFFERENT: Different = Different {
    key_hash: "(:random::text || '4000800000000000')::uuid",
    operation_id: "(:rising::text || (4000800000000000 + :client_id)::text)::uuid",
    owner: "(:random::text || '4000800000000001')::uuid",
    key: "'0a4f6c1e-8f5e-4c3a-9' || :random::text",
};

/// The same for the request of number `n`.
const MANY: Different = Different {
    key_hash: "md5(:random::text || n::text)::uuid",
    operation_id: "((:rising::int8 + n)::text || (4000800000000000 + :client_id)::text)::uuid",
    owner: "md5(n::text || :random::text)::uuid",
    key: "'0a4f6c1e-8f5e-4c3a-9' || (:random::int8 + n)::text",
};

/// How the file begins that pgbench writes each latency to.
const LOG: &str = "latencies";

pub(crate) struct Side<'a> {
    cluster: &'a Cluster,
    database: &'static str,
    script: PathBuf,
    script_of_many: PathBuf,
}

impl<'a> Side<'a> {
    pub(crate) fn new(cluster: &'a Cluster, database: &'static str) -> Result<Self, Box<dyn Error>> {
        let script = cluster.directory().join("pair.sql");
        let text = format!(
            "\\set random random(1000000000000000, 9999999999999999)\n\\set rising :rising + 1\n{};\n{};\n",
            DIFFERENT.reserve(),
            DIFFERENT.complete()
        );
        fs::write(&script, text)?;
        let script_of_many = cluster.directory().join("many.sql");
        let numbers = "generate_series(1, :many::int4)";
        let text = format!(
            "\\set random random(1000000000000000, 9999999999999999)\n\\set rising :rising + :many\n{};\n{};\n",
            MANY.reserve_all(numbers),
            MANY.complete_all(numbers)
        );
        fs::write(&script_of_many, text)?;
        Ok(Self { cluster, database, script, script_of_many })
    }

    /// Pairs per second over so many connections.
    pub(crate) fn run(&self, connections: usize, span: Duration) -> Result<f64, Box<dyn Error>> {
        rate(&self.measure(&self.script, connections, span, &[])?)
    }

    /// The same where so many are reserved by one statement, and completed by another.
    pub(crate) fn run_many(
        &self,
        connections: usize,
        many: usize,
        span: Duration,
    ) -> Result<f64, Box<dyn Error>> {
        let defined = format!("many={many}");
        let said = self.measure(&self.script_of_many, connections, span, &["-D", &defined])?;
        Ok(rate(&said)? * many as f64)
    }

    /// How long each pair took over one connection, in microseconds.
    pub(crate) fn run_alone(&self, span: Duration) -> Result<Vec<f64>, Box<dyn Error>> {
        let prefix = self.cluster.directory().join(LOG);
        self.measure(&self.script, 1, span, &["-l", "--log-prefix", &prefix.display().to_string()])?;
        let mut micros = Vec::new();
        for entry in fs::read_dir(self.cluster.directory())? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(LOG) {
                let log = fs::read_to_string(entry.path())?;
                micros.extend(log.lines().filter_map(|line| line.split(' ').nth(2)?.parse::<f64>().ok()));
                fs::remove_file(entry.path())?;
            }
        }
        if micros.is_empty() { Err("pgbench wrote no latencies".into()) } else { Ok(micros) }
    }

    fn measure(
        &self,
        script: &Path,
        connections: usize,
        span: Duration,
        more: &[&str],
    ) -> Result<String, Box<dyn Error>> {
        // A number of 16 digits that is larger in each run.
        let rising = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_micros();
        let mut pgbench = self.cluster.program("pgbench")?;
        pgbench.args(["-n", "-M", "prepared", "-j", &connections.min(2).to_string()]);
        pgbench.args(["-c", &connections.to_string(), "-T", &span.as_secs().max(1).to_string()]);
        pgbench.args(["-D", &format!("rising={rising}")]).args(more);
        // Plans are made while the table is empty, and kept: not one that reads the whole of it.
        pgbench.env("PGOPTIONS", "-c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off");
        let done = pgbench.arg("-f").arg(script).arg(self.database).output()?;
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        if done.status.success() && said.contains("number of failed transactions: 0 ") {
            return Ok(said);
        }
        Err(format!("pgbench failed: {said}{}", String::from_utf8_lossy(&done.stderr)).into())
    }
}

fn rate(said: &str) -> Result<f64, Box<dyn Error>> {
    let tps = said.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok());
    tps.ok_or_else(|| format!("pgbench told no rate: {said}").into())
}
