//! Forms and queries: in which order pairs come matters to many services.

use crate::support::{Ask, Shop};

const FORM: &str = "application/x-www-form-urlencoded";

#[tokio::test]
async fn a_form_that_services_read_in_order_is_another_one_in_another_order() {
    let shop = Shop::open().await;
    let door = shop.door("").await;
    for (number, (one, other)) in [
        // Rack starts a new item where a name comes again, PHP adds to the list.
        ("items[][sku]=A&items[][qty]=9&items[][sku]=B", "items[][sku]=A&items[][sku]=B&items[][qty]=9"),
        ("items%5B%5D=1&other=2&items%5B%5D=3", "items%5B%5D=1&items%5B%5D=3&other=2"),
        // PHP reads both names as a_b, and the last one counts.
        ("a.b=1&a_b=2", "a_b=2&a.b=1"),
        ("a+b=1&a_b=2", "a_b=2&a+b=1"),
        // Names without case are one name, with both values in their order.
        ("a=1&A=2", "A=2&a=1"),
        ("a=1&b=2&a=3", "a=1&a=3&b=2"),
        // A semicolon separates, or does not.
        ("a=1;c=2&c=3", "c=3&a=1;c=2"),
        // Rack: nothing, and an empty text.
        ("a=1&b", "a=1&b="),
    ]
    .into_iter()
    .enumerate()
    {
        let key = format!("form-in-order-{number:04}");
        let first = door.send(&key, &Ask::new(FORM, one)).await;
        assert_eq!(first.execution(), number + 1);
        door.send(&key, &Ask::new(FORM, one)).await.is_replay_of(&first);
        door.send(&key, &Ask::new(FORM, other)).await.is_another_request();
    }
    assert_eq!(shop.executions(), 8);
}

#[tokio::test]
async fn a_plain_form_is_the_same_in_any_order_and_spelling() {
    let shop = Shop::open().await;
    let door = shop.door("").await;
    let first = door.send("a-plain-form-0001", &Ask::new(FORM, "amount=10&note=a+b&to-account=x_1")).await;
    for same in ["note=a%20b&to-account=x%5F1&amount=10", "&amount=%31%30&&to-account=x_1&note=a+b&"] {
        door.send("a-plain-form-0001", &Ask::new(FORM, same)).await.is_replay_of(&first);
    }
    let spelt =
        Ask::new("Application/X-WWW-Form-URLEncoded;Charset=\"UTF-8\"", "note=a+b&amount=10&to-account=x_1");
    door.send("a-plain-form-0001", &spelt).await.is_replay_of(&first);
    assert_eq!(shop.executions(), 1);
}

#[tokio::test]
async fn a_query_is_compared_like_a_form() {
    let shop = Shop::open().await;
    let door = shop.door("[[route]]\noperation = \"pay\"\nmatch = \"POST /payments\"\n").await;
    let ask = |target| Ask::json().target(target);
    let first = door.send("a-query-in-order", &ask("/payments?i[]=1&o=2&i[]=3")).await;
    door.send("a-query-in-order", &ask("/payments?i[]=1&o=2&i[]=3")).await.is_replay_of(&first);
    door.send("a-query-in-order", &ask("/payments?i[]=1&i[]=3&o=2")).await.is_another_request();
    let first = door.send("a-query-in-any-order", &ask("/payments?a=1&o=2")).await;
    door.send("a-query-in-any-order", &ask("/payments?o=2&a=1")).await.is_replay_of(&first);
}

#[tokio::test]
async fn the_same_bytes_in_another_charset_are_another_request() {
    let shop = Shop::open().await;
    let door = shop.door("").await;
    for (number, (media_type, body, charset)) in [
        ("application/json", &br#"{"name":"\u00e9","a":1}"#[..], "iso-8859-1"),
        ("application/json", br#"{"name":"x","a":1}"#, "utf-16"),
        (FORM, b"name=%C3%A9", "windows-1252"),
        ("text/csv", b"name\r\n\xc3\xa9\r\n", "iso-8859-1"),
    ]
    .into_iter()
    .enumerate()
    {
        let key = format!("another-charset-{number:04}");
        let first = door.send(&key, &Ask::new(media_type, body)).await;
        assert_eq!(first.execution(), number + 1);
        door.send(&key, &Ask::new(media_type, body)).await.is_replay_of(&first);
        let other = Ask::new(&format!("{media_type}; charset={charset}"), body);
        door.send(&key, &other).await.is_another_request();
    }
    // In another charset equal bytes are equal, and nothing else is: what they mean there is not looked at.
    let coded = |body: &'static [u8]| Ask::new("application/json; charset=iso-8859-1", body);
    let first = door.send("in-latin-1-itself", &coded(b"{\"a\": \"\xe9\"}")).await;
    door.send("in-latin-1-itself", &coded(b"{\"a\": \"\xe9\"}")).await.is_replay_of(&first);
    door.send("in-latin-1-itself", &coded(b"{\"a\":\"\xe9\"}")).await.is_another_request();
    assert_eq!(shop.executions(), 5);
}
