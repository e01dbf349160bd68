mod first;
mod second;
mod third;

pub(crate) use third::Third;
