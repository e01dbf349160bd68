//! Reaches the third module by the name that the root gives out.

pub(crate) struct Second(crate::Third);
