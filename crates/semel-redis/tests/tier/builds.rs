//! Two builds on one Redis.

use crate::instance::Service;
use crate::replays::names_of;
use semel_redis::Refused;

#[tokio::test]
async fn what_another_build_wrote_is_not_read_and_stays() {
    let service = Service::new();
    let instance = service.instance().await;
    let answer = instance.carry_out("key").await;
    let [name] = &names_of(&service, &instance).await[..] else { panic!("one key") };
    let client = redis::Client::open(service.url.clone()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    // The format follows the head, which is the same in all formats.
    let mut command = redis::cmd("SETRANGE");
    command.arg(&name[..]).arg(28).arg(&[2_u8][..]).query_async::<()>(&mut connection).await.unwrap();
    let value = async |connection: &mut redis::aio::MultiplexedConnection| -> Vec<u8> {
        redis::cmd("GET").arg(&name[..]).query_async(connection).await.unwrap()
    };
    let theirs = value(&mut connection).await;
    for number in 1..=3 {
        assert_eq!(instance.replayed("key").await, answer, "the store is asked");
        assert_eq!(instance.counts().refused(Refused::Format), number);
    }
    assert_eq!(value(&mut connection).await, theirs, "it is theirs, of the same version: it stays");
}
