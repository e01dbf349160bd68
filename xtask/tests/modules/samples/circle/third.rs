pub(crate) struct Third;

fn back() {
    println!("{:?}", super::first::First::default());
}
