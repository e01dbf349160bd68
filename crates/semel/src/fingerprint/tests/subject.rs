use super::*;
use serde::Serialize;
use std::sync::Arc;

#[derive(Serialize)]
struct Pay {
    amount: u64,
    currency: &'static str,
}

#[test]
fn a_command_type_is_hashed_by_its_meaning() {
    let recipe = Recipe::builder().command("pay/1").default("/currency", "\"EUR\"").build().unwrap();
    let hash = |command: &serde_json::Value| command_fingerprint(&recipe, None, command).unwrap();
    let typed = command_fingerprint(&recipe, None, &Pay { amount: 5, currency: "EUR" }).unwrap();
    assert_eq!(typed.0, recipe.id());
    assert_eq!(hash(&serde_json::json!({"currency": "EUR", "amount": 5})), typed);
    assert_eq!(hash(&serde_json::json!({"amount": 5.0})), typed);
    assert_ne!(hash(&serde_json::json!({"amount": 6})), typed);
    let error = command_fingerprint(&everything(), None, &5).unwrap_err();
    assert!(matches!(error, CommandError::NoCommandRecipe));
    let unserialisable: std::collections::HashMap<(u8, u8), u8> = [((1, 2), 3)].into();
    assert!(matches!(command_fingerprint(&recipe, None, &unserialisable), Err(CommandError::Serialize(_))));
}

#[test]
fn a_subject_is_hashed_again_under_the_recipe_of_an_old_record() {
    let old = everything();
    let new = versioned();
    let (head, ()) = http::Request::post("/payments?a=1&b=2")
        .header("content-type", "application/json")
        .body(())
        .unwrap()
        .into_parts();
    let request = HttpRequest {
        operation: "create_payment",
        method: &head.method,
        path: head.uri.path(),
        query: head.uri.query(),
        host: None,
        headers: &head.headers,
        body: b"{}",
    };
    let subject = RequestSubject { recipe: &new, secret: None, request };
    let subject: &dyn Subject = &subject;
    assert_eq!(subject.recipe(), &new);
    assert_eq!(subject.fingerprint_under(subject.recipe()), Ok(sample("{}").hash()));
    let stored = Recipe::from_text(old.to_text()).unwrap();
    assert_eq!(subject.fingerprint_under(&stored), Ok(sample("{}").hash_by(&old)));
    let command = Recipe::builder().command("pay/1").build().unwrap();
    assert_eq!(subject.fingerprint_under(&command), Err(RecipeUnavailable::OtherSubject));
}

#[test]
fn a_command_still_matches_a_record_of_its_former_version() {
    let first = Recipe::builder().command("pay/1").build().unwrap();
    let second = Arc::new(Recipe::builder().command("pay/2").build().unwrap());
    let (_, before) = command_fingerprint(&first, None, &serde_json::json!({"amount": 5})).unwrap();
    let now = Command::new(second, None, &Pay { amount: 5, currency: "EUR" }).unwrap();
    assert_eq!(now.fingerprint_under(&first), Err(RecipeUnavailable::OtherSubject));
    let now = now.formerly("pay/1", &serde_json::json!({"amount": 5})).unwrap();
    assert_eq!(now.fingerprint_under(&first), Ok(before));
    assert_ne!(now.fingerprint_under(now.recipe()), Ok(before));
    assert_eq!(now.fingerprint_under(&everything()), Err(RecipeUnavailable::OtherSubject));
}
