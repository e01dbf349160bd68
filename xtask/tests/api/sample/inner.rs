use std::fmt;

#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Shown {
    pub name: String,
    secret: u32,
}

pub struct Deep(pub u32, String);

pub struct NotExported;

pub enum Choice {
    One,
    Two(u32),
}

pub trait Speaks {
    fn speak(&self) -> String;
    fn twice(&self) -> String {
        self.speak().repeat(2)
    }
}

impl Shown {
    /// Documented.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), secret: 1 }
    }
    fn quiet(&self) {}
    pub(crate) fn known_here(&self) {}
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl NotExported {
    pub fn unseen(&self) {}
}

#[cfg(test)]
mod tests {
    pub struct OfATest;
}
