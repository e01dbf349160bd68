import { randomUUID } from "node:crypto";

// One key per payment, made before the first try and the same on every retry.
const key = randomUUID();

async function pay(amount) {
  const response = await fetch("http://127.0.0.1:8080/payments", {
    method: "POST",
    headers: { "Content-Type": "application/json", "Idempotency-Key": key },
    body: JSON.stringify({ amount }),
  });
  console.log(response.status, response.headers.get("idempotent-replayed") ?? "first", await response.text());
}

await Promise.all([pay("10.00"), pay("10.00"), pay("10.00")]); // a double click
await pay("10.00"); // a retry, later
await pay("99.00"); // another payment under the same key
