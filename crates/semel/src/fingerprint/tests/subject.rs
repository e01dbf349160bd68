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
fn a_request_for_a_command_counts_what_is_done_to_what() {
    let recipe = Arc::new(Recipe::builder().command("refund/1").header("api-version").build().unwrap());
    let command =
        |amount| Command::new(Arc::clone(&recipe), None, &serde_json::json!({ "amount": amount })).unwrap();
    let hash = |command: &Command, request: &Sample| {
        command.fingerprint_of_request(&recipe, None, &request.request()).unwrap()
    };
    let (base, command, more) = (sample("{}").with("api-version", "1"), command(5), command(6));
    let others = [
        base.clone().change(|it| it.operation = "create_refund"),
        base.clone().change(|it| it.method = Method::PATCH),
        base.clone().change(|it| it.path = "/payments/2/refunds"),
        base.clone().change(|it| it.query = Some("a=1&b=3")),
        base.clone().with("api-version", "2"),
    ];
    let hashes: HashSet<_> = others.iter().chain([&base]).map(|request| hash(&command, request)).collect();
    assert_eq!(hashes.len(), others.len() + 1);
    // The body is the command's business, and the command alone is another thing than a request for it.
    assert_eq!(hash(&command, &base.clone().change(|it| it.body = b"[]".to_vec())), hash(&command, &base));
    assert_ne!(command.fingerprint_under(&recipe), Ok(hash(&command, &base)));
    assert_ne!(hash(&more, &base), hash(&command, &base));
    // A record from before there was the command has the recipe of a request.
    let of_request = command.fingerprint_of_request(&everything(), None, &base.request());
    assert_eq!(of_request, Ok(base.hash_by(&everything())));
    let other = Recipe::builder().command("refund/2").build().unwrap();
    let under_other = command.fingerprint_of_request(&other, None, &base.request());
    assert_eq!(under_other, Err(RecipeUnavailable::OtherSubject));
}

// It is in stores, as the texts of old recipes are.
#[test]
fn the_fingerprint_of_a_request_for_a_command_stays_what_it_is() {
    let recipe = Arc::new(Recipe::builder().command("refund/1").build().unwrap());
    let command = Command::new(Arc::clone(&recipe), None, &serde_json::json!({ "amount": 5 })).unwrap();
    let hash = command.fingerprint_of_request(&recipe, None, &sample("{}").request()).unwrap();
    assert_eq!(hex(&hash.0), "0f3b018b58645a730402eec41c21fb6668cff0bead25ad4acd0f63399a49296e");
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
