//! Every configuration in the documentation is right: Semel's own, and those of what stands around it.

use crate::right::{KEYS, UPSTREAM};
use crate::tls::with_files;
use semel_gateway::Config;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// All files below a directory whose names end so.
fn files(directory: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path.extension().is_some_and(|extension| extension == ending) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Reads it where every variable is set, to what does for a token and for the secret of a webhook, or for a key that seals; and where the
/// files that it names are there.
fn right(toml: &str, from: &Path) -> Config {
    let secret = "whsec_dGhlLWZpcnN0LXNlY3JldC1pbi10aGUtZW52aXJvbm1lbnQ=".to_owned();
    let key = |name: &str| name.bytes().cycle().take(32).map(|byte| format!("{byte:02x}")).collect();
    // No two users may have the same token.
    let environment = |name: &str| {
        Ok(match name {
            _ if name.contains("_KEY") => key(name),
            _ if name.contains("SECRET") => secret.clone(),
            _ => format!("{secret}{name}"),
        })
    };
    let (toml, _files) = with_files(&toml.replace("/etc/semel/jwks", &format!("{KEYS}/jwks")));
    Config::from_toml_in(&toml, from, &environment).unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn every_example_of_a_page_is_right() {
    let mut count = 0;
    for page in files(&docs(), "md") {
        let text = fs::read_to_string(&page).unwrap();
        for block in text.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()) {
            // What an application writes into its Cargo.toml, and the file of `semel check`.
            if block.starts_with("[dependencies]") || block.starts_with("# check.toml") {
                continue;
            }
            let of_a_route = block.trim_start().starts_with("[route.");
            let route = if of_a_route { "[[route]]\noperation = \"a\"\nmatch = \"POST /a\"\n" } else { "" };
            let upstream = if block.contains("upstream =") { "" } else { UPSTREAM };
            right(&format!("{upstream}{route}{block}"), &page);
            count += 1;
        }
    }
    assert!(count > 15, "{count}");
}

/// What is in a YAML file, document by document.
fn yaml(file: &Path) -> Vec<serde_json::Value> {
    let program = "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))";
    let output = Command::new("python3").args(["-c", program]).arg(file).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{}: {said}\nwithout python3 and its yaml (Debian: python3-yaml): `cargo xtask test` brings them",
        file.display()
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn what_is_for_kubernetes_is_yaml_with_right_configurations() {
    let files = files(&docs().join("operating/kubernetes"), "yaml");
    assert_eq!(files.len(), 2);
    for file in files {
        let documents = yaml(&file);
        let of_kind = |kind: &'static str| documents.iter().filter(move |document| document["kind"] == kind);
        let maps: Vec<_> = of_kind("ConfigMap").collect();
        assert_eq!(maps.len(), 1, "{}", file.display());
        let config = right(maps[0]["data"]["semel.toml"].as_str().unwrap(), &file);

        let pod = &of_kind("Deployment").next().unwrap()["spec"]["template"]["spec"];
        let containers = pod["containers"].as_array().unwrap();
        let semel = containers.iter().find(|container| container["name"] == "semel").unwrap();
        let port = |name: &str| {
            let ports = semel["ports"].as_array().unwrap();
            ports.iter().find(|port| port["name"] == name).unwrap()["containerPort"].as_u64().unwrap()
        };
        assert_eq!(port("http"), u64::from(config.listen.port()));
        assert_eq!(port("admin"), u64::from(config.admin.listen.port()));
        let pause = semel["lifecycle"]["preStop"]["sleep"]["seconds"].as_u64().unwrap();
        let patience = pod["terminationGracePeriodSeconds"].as_u64().unwrap();
        assert!(patience > pause + config.limits.drain.as_secs(), "{}: it would be killed", file.display());
        assert_eq!(semel["securityContext"]["readOnlyRootFilesystem"], true);
        let volume = &pod["volumes"][0];
        assert_eq!(volume["configMap"]["name"], maps[0]["metadata"]["name"]);
        assert_eq!(volume["name"], semel["volumeMounts"][0]["name"]);
    }
}

#[test]
fn what_is_for_traefik_is_yaml_whose_parts_are_there() {
    let directory = docs().join("operating/traefik");
    let entrances = &yaml(&directory.join("traefik.yaml"))[0]["entryPoints"];
    let http = &yaml(&directory.join("dynamic.yaml"))[0]["http"];
    for (name, router) in http["routers"].as_object().unwrap() {
        assert!(http["services"][router["service"].as_str().unwrap()].is_object(), "{name}");
        for entrance in router["entryPoints"].as_array().unwrap() {
            assert!(entrances[entrance.as_str().unwrap()].is_object(), "{name}");
        }
        for middleware in router["middlewares"].as_array().into_iter().flatten() {
            assert!(http["middlewares"][middleware.as_str().unwrap()].is_object(), "{name}: {middleware}");
        }
    }
    let transport = &http["services"]["semel"]["loadBalancer"]["serversTransport"];
    assert!(http["serversTransports"][transport.as_str().unwrap()].is_object());
}

#[test]
fn nginx_takes_its_example() {
    let directory = tempfile::tempdir().unwrap();
    let example = docs().join("operating/nginx/semel.conf").canonicalize().unwrap();
    let whole = directory.path().join("nginx.conf");
    let directory = directory.path().display();
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {directory}/{kind};"))
        .join("\n");
    let text = format!(
        "error_log stderr;\npid {directory}/pid;\nevents {{}}\nhttp {{\naccess_log off;\n{temporary}\ninclude {};\n}}\n",
        example.display()
    );
    fs::write(&whole, text).unwrap();
    let output = Command::new("nginx").arg("-t").arg("-c").arg(&whole).output();
    let output = output.expect("nginx has to be there (Debian: nginx-light): `cargo xtask test` brings it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn systemd_takes_its_unit() {
    let unit = fs::read_to_string(docs().join("operating/semel.service")).unwrap();
    for line in ["ExecStart=/usr/local/bin/semel gateway --config", "ExecReload=/usr/local/bin/semel reload"]
    {
        assert!(unit.contains(line), "{line}");
    }
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        eprintln!("SKIPPED: there is no systemd-analyze here, so that nobody checks the unit");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("semel.service");
    // The program has to be there to be believed.
    fs::write(&file, unit.replace("/usr/local/bin/semel", "/bin/true")).unwrap();
    let output = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&file).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
}
