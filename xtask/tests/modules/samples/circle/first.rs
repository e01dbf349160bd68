use crate::second::Second;

pub(crate) struct First(Second);
