//! The code of the guides, in whole programs: a module for each page. `tests/blocks.rs` holds pages and programs together.

mod encryption;
mod operations_with_outside_effects;
mod protecting_an_axum_service;
mod settling_doubt;
mod telling_others_once;
mod writing_a_store;
