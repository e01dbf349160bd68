mod child;

pub(crate) struct Below(child::Child);

#[cfg(test)]
mod tests {
    use crate::above::Above;
}
