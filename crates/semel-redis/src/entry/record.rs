//! A record as bytes, whole.

use super::bytes::{Reader, put_bytes, put_optional};
use bytes::Bytes;
use semel::{
    Body, Fingerprint, OperationId, Origin, Owner, RecipeId, Record, RecordKey, Resource, State,
    StoredResponse, Times, Timestamp,
};

pub(super) fn write(record: &Record, to: &mut Vec<u8>) {
    for part in [&*record.key.tenant, &*record.key.stored_operation(), &*record.key.key] {
        put_bytes(part.as_bytes(), to);
    }
    to.extend(record.operation_id.as_bytes());
    to.extend(record.fingerprint.0);
    to.extend(record.recipe.0);
    put_bytes(record.state.as_str().as_bytes(), to);
    to.extend(record.version.to_be_bytes());
    to.extend(record.attempt.to_be_bytes());
    to.extend(record.owner.as_bytes());
    put_bytes(record.origin.as_str().as_bytes(), to);
    put_optional(record.recovery_point.as_ref(), to, |text, to| put_bytes(text.as_bytes(), to));
    put_optional(record.checkpoint.as_ref(), to, |bytes, to| put_bytes(bytes, to));
    put_optional(record.response.as_ref(), to, put_response);
    put_optional(record.resource.as_ref(), to, |resource, to| {
        put_bytes(resource.kind.as_bytes(), to);
        put_bytes(resource.id.as_bytes(), to);
    });
    put_optional(record.last_error.as_ref(), to, |text, to| put_bytes(text.as_bytes(), to));
    to.extend(record.reconcile_attempts.to_be_bytes());
    to.push(u8::from(record.dead_letter));
    let times = &record.times;
    to.extend(times.created.as_millis().to_be_bytes());
    to.extend(times.lease.as_millis().to_be_bytes());
    for moment in [times.completed, times.body_expires, times.expires, times.purge, times.reconcile] {
        put_optional(moment.as_ref(), to, |moment, to| to.extend(moment.as_millis().to_be_bytes()));
    }
}

fn put_response(response: &StoredResponse, to: &mut Vec<u8>) {
    to.extend(response.status.to_be_bytes());
    to.extend(u32::try_from(response.headers.len()).unwrap_or(u32::MAX).to_be_bytes());
    for (name, value) in &response.headers {
        put_bytes(name.as_bytes(), to);
        put_bytes(value, to);
    }
    match &response.body {
        Body::Stored(bytes) => {
            to.push(b's');
            put_bytes(bytes, to);
        }
        Body::Sealed(bytes) => {
            to.push(b'e');
            put_bytes(bytes, to);
        }
        Body::NotStored => to.push(b'n'),
        // Never kept here: what was dropped is over, and what was omitted was not read.
        _ => to.push(b'?'),
    }
    put_optional(response.schema_version.as_ref(), to, |text, to| put_bytes(text.as_bytes(), to));
}

pub(super) fn read(from: &mut Reader) -> Option<Record> {
    let key = RecordKey::from_stored(from.text()?, from.text()?, from.text()?);
    Some(Record {
        key,
        operation_id: OperationId::from_bytes(from.array()?),
        fingerprint: Fingerprint(from.array()?),
        recipe: RecipeId(from.array()?),
        state: State::from_name(&from.text()?)?,
        version: from.u64()?,
        attempt: from.u32()?,
        owner: Owner::from_bytes(from.array()?),
        origin: Origin::from_name(&from.text()?)?,
        recovery_point: from.optional(Reader::text)?,
        checkpoint: from.optional(Reader::bytes)?,
        response: from.optional(response)?,
        resource: from.optional(|from| Some(Resource { kind: from.text()?, id: from.text()? }))?,
        last_error: from.optional(Reader::text)?,
        reconcile_attempts: from.u32()?,
        dead_letter: from.u8()? == 1,
        times: times(from)?,
    })
}

fn response(from: &mut Reader) -> Option<StoredResponse> {
    let status = from.u16()?;
    let count = from.u32()?;
    // Not reserved ahead: the count is not to be believed before the headers are there.
    let mut headers: Vec<(String, Bytes)> = Vec::new();
    for _ in 0..count {
        headers.push((from.text()?, from.bytes()?));
    }
    let body = match from.u8()? {
        b's' => Body::Stored(from.bytes()?),
        b'e' => Body::Sealed(from.bytes()?),
        b'n' => Body::NotStored,
        _ => return None,
    };
    Some(StoredResponse { status, headers, body, schema_version: from.optional(Reader::text)? })
}

fn times(from: &mut Reader) -> Option<Times<Timestamp>> {
    let moment = |from: &mut Reader| from.i64().map(Timestamp::from_millis);
    Some(Times {
        created: moment(from)?,
        lease: moment(from)?,
        completed: from.optional(moment)?,
        body_expires: from.optional(moment)?,
        expires: from.optional(moment)?,
        purge: from.optional(moment)?,
        reconcile: from.optional(moment)?,
    })
}
