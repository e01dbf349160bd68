use super::Below;

pub(crate) struct Child(Option<Box<Below>>);
