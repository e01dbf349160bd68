//! Decisions, one by one.

use super::*;
use crate::entry::Terms;

const USUAL: Rules = Rules { deduplicates: true, declines: false, notifies: false };
const FORGETFUL: Rules = Rules { deduplicates: false, ..USUAL };
const DECLINING: Rules = Rules { declines: true, ..USUAL };

fn charge(identity: &str, attempt: u32, amount: &str) -> Order {
    Order {
        id: format!("ch_{}", uuid::Uuid::now_v7()),
        object: Object::Charge,
        identity: identity.to_owned(),
        attempt,
        terms: Terms {
            charge_id: None,
            amount: amount.to_owned().try_into().unwrap(),
            currency: "EUR".to_owned().try_into().unwrap(),
            reference: "invoice-1".to_owned(),
        },
        operation_id: None,
        when_succeeded: None,
        when_declined: None,
    }
}

fn refund(identity: &str, of: &str, amount: &str) -> Order {
    let mut order = charge(identity, 1, amount);
    order.object = Object::Refund;
    order.terms.charge_id = Some(of.to_owned());
    order
}

fn id(placed: &Placed) -> &str {
    match placed {
        Placed::Now(entry) | Placed::Before(entry) => &entry.transaction().unwrap().0.id,
        Placed::Refused(refusal) => panic!("refused: {refusal:?}"),
    }
}

fn refusal(placed: &Placed) -> Option<Refusal> {
    match placed {
        Placed::Refused(refusal) => Some(*refusal),
        _ => None,
    }
}

#[test]
fn an_identity_is_charged_once() {
    let mut book = Book::default();
    let first = book.place(charge("a", 1, "1.00"), USUAL, 1);
    let second = book.place(charge("a", 2, "1"), USUAL, 2);
    assert!(matches!(first, Placed::Now(_)) && matches!(second, Placed::Before(_)));
    assert_eq!(id(&first), id(&second));
    assert_eq!(refusal(&book.place(charge("a", 1, "2.00"), USUAL, 3)), Some(Refusal::OtherTerms));
    assert_eq!(book.summary(), Summary { entries: 1, charges: 1, ..Summary::default() });
}

#[test]
fn without_deduplication_every_charge_is_another() {
    let mut book = Book::default();
    for _ in 0..3 {
        assert!(matches!(book.place(charge("a", 1, "1.00"), FORGETFUL, 1), Placed::Now(_)));
    }
    let twice = Summary { entries: 3, charges: 3, identities_charged_twice: 1, ..Summary::default() };
    assert_eq!(book.summary(), twice);
    assert_eq!(book.deeds("a", 10).effects, 3);
}

#[test]
fn absence_seals_the_attempts_that_it_was_told_of() {
    for rules in [USUAL, FORGETFUL] {
        let mut book = Book::default();
        assert!(book.ask(Object::Charge, "a", 2, 1).is_none());
        for late in [1, 2] {
            let sealed = Some(Refusal::Sealed { up_to: 2 });
            assert_eq!(refusal(&book.place(charge("a", late, "1.00"), rules, 2)), sealed);
        }
        let third = book.place(charge("a", 3, "1.00"), rules, 3);
        assert!(matches!(third, Placed::Now(_)));
        let known = book.ask(Object::Charge, "a", 3, 4).unwrap();
        assert_eq!(known.transaction().unwrap().0.id, id(&third));
        // The seal stays, even where a replay would do no harm: who was told of absence may have told others.
        assert!(refusal(&book.place(charge("a", 1, "1.00"), rules, 5)).is_some());
    }
}

#[test]
fn asking_twice_seals_once_and_further_where_asked_to() {
    let mut book = Book::default();
    for attempt in [2, 1, 2, 3] {
        assert!(book.ask(Object::Charge, "a", attempt, 1).is_none());
    }
    assert_eq!(book.summary(), Summary { entries: 2, sealed: 2, ..Summary::default() });
    assert_eq!(refusal(&book.place(charge("a", 3, "1.00"), USUAL, 2)), Some(Refusal::Sealed { up_to: 3 }));
}

#[test]
fn a_charge_and_a_refund_of_one_identity_are_two_things() {
    let mut book = Book::default();
    let charged = book.place(charge("a", 1, "5.00"), USUAL, 1);
    assert!(book.ask(Object::Refund, "a", 1, 2).is_none());
    let sealed = book.place(refund("a", id(&charged), "5.00"), USUAL, 3);
    assert_eq!(refusal(&sealed), Some(Refusal::Sealed { up_to: 1 }));
    assert!(matches!(book.place(refund("b", id(&charged), "5.00"), USUAL, 4), Placed::Now(_)));
    assert!(matches!(book.place(charge("b", 1, "5.00"), USUAL, 5), Placed::Now(_)));
    assert_eq!(book.deeds("b", 10).effects, 2);
    assert_eq!(book.summary().identities_charged_twice, 0);
}

#[test]
fn a_refund_is_of_a_charge_that_was_made() {
    let mut book = Book::default();
    let declined = book.place(charge("a", 1, "5.00"), DECLINING, 1);
    let charged = book.place(charge("b", 1, "5.00"), USUAL, 2);
    for (of, amount, refused) in [
        ("ch_nothing", "5.00", Refusal::NoSuchCharge),
        (id(&declined), "5.00", Refusal::NoSuchCharge),
        (id(&charged), "5.01", Refusal::MoreThanTheCharge),
    ] {
        assert_eq!(refusal(&book.place(refund("r", of, amount), USUAL, 3)), Some(refused));
    }
    // Two refunds of the whole charge are one too many, and the ledger shows them.
    for identity in ["r1", "r2"] {
        assert!(matches!(book.place(refund(identity, id(&charged), "5.00"), USUAL, 4), Placed::Now(_)));
    }
    assert_eq!(book.summary().refunds, 2);
}

#[test]
fn declined_is_remembered_and_no_effect() {
    let mut book = Book::default();
    let declined = book.place(charge("a", 1, "1.00"), DECLINING, 1);
    let again = book.place(charge("a", 2, "1.00"), USUAL, 2);
    assert!(matches!(again, Placed::Before(_)));
    assert_eq!(id(&again), id(&declined));
    assert_eq!(book.deeds("a", 10).effects, 0);
    assert_eq!(book.summary(), Summary { entries: 1, declined: 1, ..Summary::default() });
}

#[test]
fn a_webhook_is_owed_until_it_was_taken() {
    let mut book = Book::default();
    book.place(charge("a", 1, "1.00"), USUAL, 1);
    for (identity, rules) in [("b", USUAL), ("c", DECLINING)] {
        book.place(charge(identity, 1, "1.00"), Rules { notifies: true, ..rules }, 1);
    }
    assert_eq!(book.owed(0, 3), [2, 3]);
    assert_eq!(book.owed(2, 3), [3]);
    assert!(book.owed(3, 3).is_empty());
    book.delivered(2, 2);
    book.delivered(2, 3);
    assert_eq!((book.owed(0, 4), book.last()), (vec![3], 4));
}
