use crate::Shared;
use crate::below::Below;

pub(crate) struct Above(Below, Shared);
