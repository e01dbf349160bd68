//! The console in a real browser: Chromium, driven by Playwright, on gateways whose operations were made by real requests.
//!
//! All scenarios run in one program (browser/run.mjs) with one browser, because starting browsers is what takes time; each is a test here.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "what goes wrong here is a failed test"
)]
#![cfg(unix)]

use semel_events::message::Event;
use semel_events::outbox::sqlite::append;
use semel_sqlite::SqliteStore;
use semel_testing::database::Database;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// What went wrong in each scenario; nothing: it passed.
type Results = BTreeMap<String, Option<String>>;

fn results() -> &'static Results {
    static RESULTS: OnceLock<Results> = OnceLock::new();
    RESULTS.get_or_init(|| {
        let directory = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let database = runtime.block_on(Database::new());
        runtime.block_on(append_events(&directory.path().join("events.db")));
        let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/console/browser/run.mjs");
        let semel = semel_testing::gateway::semel().get_program().to_owned();
        let ran = Command::new("node")
            .arg(run)
            .args([packages().into_os_string(), semel, directory.path().into(), database.url().into()])
            .stderr(Stdio::inherit())
            .output()
            .expect("node can be started");
        let said = String::from_utf8(ran.stdout).unwrap();
        let results: Results = said
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .filter_map(|line| {
                let problem = line["problem"].as_str().map(str::to_owned);
                Some((line["scenario"].as_str()?.to_owned(), problem))
            })
            .collect();
        assert!(!results.is_empty(), "no scenario ran: {said}");
        results
    })
}

/// Events of an application, which their receiver refuses.
async fn append_events(store: &Path) {
    let events = ["pay_1", "pay_2"].map(|payment| {
        Event::json(format!("payment/{payment}"), "payment.made", format!("{{\"payment\":\"{payment}\"}}"))
    });
    let store = SqliteStore::open(store).await.unwrap();
    store.transaction(move |tx| append(tx, &events)).await.unwrap();
    store.close().await;
}

/// Where `cargo xtask test` has put the libraries.
fn packages() -> PathBuf {
    let place = semel_testing::servers::tools().map(|tools| tools.join("sdks"));
    let installed = place.filter(|place| place.join("semel-packages").is_file());
    installed.expect("playwright-core is missing: run `cargo xtask test semel-cli`").join("node")
}

#[track_caller]
fn passes(scenario: &str) {
    match results().get(scenario) {
        Some(None) => {}
        Some(Some(problem)) => panic!("{scenario}: {problem}"),
        None => panic!("{scenario} did not run"),
    }
}

macro_rules! scenarios {
    ($($name:ident)*) => { $(
        #[test]
        fn $name() {
            passes(stringify!($name));
        }
    )* };
}

scenarios! {
    signing_in_sets_a_cookie_that_fits_the_transport
    the_sixth_wrong_token_is_not_looked_at
    every_page_has_its_header_fields
    no_screen_violates_the_content_security_policy
    forms_of_other_pages_are_refused
    no_page_is_framed
    times_are_in_the_readers_zone_and_exact_in_the_title
    news_does_not_move_what_one_is_about_to_click
    keys_go_places_and_submit_nothing
    what_strangers_wrote_is_shown_as_text
    characters_that_cannot_be_seen_are_spelt_out
    everything_can_be_read_without_a_script
    nothing_scrolls_sideways_at_360_pixels
    dark_mode_and_forced_colours_are_readable
    axe_finds_nothing_serious_in_either_theme
    a_reader_has_no_buttons_and_foreign_tenants_are_404
    back_forward_and_a_shared_url_give_the_same_list
    while_the_store_is_unavailable_stale_data_is_marked_and_actions_are_off
    two_instances_behind_one_address_share_sessions
    nothing_is_asked_of_any_other_host
    ten_thousand_operations_are_paged_by_keyset
    alerts_link_to_an_operation
    a_session_that_ends_while_settling_costs_no_word
    two_tabs_settle_one_operation_once
    evidence_that_lands_while_settling_is_told
    a_double_click_is_one_line_of_the_audit
    other_characters_than_the_last_six_confirm_nothing
    a_stored_page_is_shown_as_text_and_downloaded_as_a_file
    doubt_is_settled_by_plain_forms
    doubt_is_settled_by_keyboard_alone
    a_lost_answer_is_not_sent_again
    many_are_settled_stopped_and_resumed
    events_are_republished_and_dropped
    who_did_what_is_in_the_audit
    an_identity_aware_proxy_signs_its_users_in
}
