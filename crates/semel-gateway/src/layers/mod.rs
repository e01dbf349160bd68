//! What a request passes before the layer of `semel-tower` sees it.

pub(crate) mod entrance;
