// Pays with Mollie's own library for Node, and prints what it gets: one JSON document. It retries answers of 5xx by itself; a
// connection that broke is for the application to retry, under the same key.
import { createRequire } from "node:module";
const [packages, gateway, cut] = process.argv.slice(2);
const require = createRequire(`${packages}/`);
// The library insists on https and its own authorities; the gateway of this test is on loopback, in the clear.
require("node:https").Agent = require("node:http").Agent;
const { createMollieClient } = require("@mollie/api-client");

async function pay(key, amount, at = gateway) {
  const mollie = createMollieClient({ apiKey: "test_1234567890123456789012345678901234", apiEndpoint: `${at}/v2/` });
  try {
    const { id } = await mollie.payments.create({
      amount: { currency: "EUR", value: (amount / 100).toFixed(2) },
      description: "an order",
      redirectUrl: "https://shop.example/",
      idempotencyKey: key,
    });
    return { id };
  } catch (error) {
    return { class: error.name, status: error.statusCode, code: error.title, text: error.message };
  }
}

const key = (name) => `key-of-the-${name}`;
const dropped = [await pay(key("order-3"), 1400, cut), await pay(key("order-3"), 1400, cut)];
console.log(JSON.stringify({
  replay: [await pay(key("order-1"), 1000), await pay(key("order-1"), 1000)],
  reused: await pay(key("order-1"), 9900),
  unknown: [await pay(key("order-2"), 1300), await pay(key("order-2"), 1300)],
  broke: dropped[0],
  dropped: dropped[1],
}));
