//! Recipes and secrets: the first value stays, and all instances agree on it.

use super::races::at_once;
use crate::{Bench, Checked};
use bytes::Bytes;
use std::collections::HashSet;
use std::sync::Arc;

pub async fn nothing_is_recalled_that_was_not_remembered(bench: Bench) -> Checked {
    assert_eq!(bench.store().recall("recipe".into()).await.expect("the store recalls"), None);
    Ok(())
}

pub async fn the_first_value_stays(bench: Bench) -> Checked {
    let store = bench.store();
    for value in ["first", "second"] {
        let kept = store.remember("secret".into(), Bytes::from(value)).await.expect("the store remembers");
        assert_eq!(kept, Bytes::from("first"));
    }
    let recalled = store.recall("secret".into()).await.expect("the store recalls");
    assert_eq!(recalled, Some(Bytes::from("first")));
    Ok(())
}

pub async fn values_are_kept_byte_by_byte_under_their_own_names(bench: Bench) -> Checked {
    let store = bench.store();
    let names = ["a", "A", "a ", "a\0", "", "recipe:\u{1f512}", "'; --"];
    let value = |at: usize| Bytes::from([&[0, 0xff, 0x80], names[at].as_bytes()].concat());
    for (at, name) in names.into_iter().enumerate() {
        store.remember(name.into(), value(at)).await.expect("the store remembers");
    }
    store.remember("empty".into(), Bytes::new()).await.expect("the store remembers");
    for (at, name) in names.into_iter().enumerate() {
        assert_eq!(store.recall(name.into()).await.expect("the store recalls"), Some(value(at)));
    }
    assert_eq!(store.recall("empty".into()).await.expect("the store recalls"), Some(Bytes::new()));
    Ok(())
}

pub async fn of_many_that_remember_at_once_all_agree(bench: Bench) -> Checked {
    let store = bench.store();
    let agreed = at_once(16, |number| {
        let store = Arc::clone(&store);
        async move {
            let value = Bytes::from(format!("secret of {number}"));
            store.remember("secret".into(), value).await.expect("the store remembers")
        }
    })
    .await;
    assert_eq!(agreed.into_iter().collect::<HashSet<_>>().len(), 1);
    Ok(())
}

pub async fn of_many_that_remember_over_two_instances_all_agree(bench: Bench) -> Checked {
    let stores = [bench.store(), bench.another().await?.store];
    let agreed = at_once(16, |number| {
        let store = Arc::clone(&stores[number % 2]);
        async move {
            let value = Bytes::from(format!("secret of {number}"));
            store.remember("secret".into(), value).await.expect("the store remembers")
        }
    })
    .await;
    assert_eq!(agreed.into_iter().collect::<HashSet<_>>().len(), 1);
    Ok(())
}
