//! The messages and the service of `proto/shop.proto`.

pub mod shop;
