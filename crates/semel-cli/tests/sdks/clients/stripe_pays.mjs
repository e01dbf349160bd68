// Pays with Stripe's own library for Node, and prints what it gets: one JSON document.
import { createRequire } from "node:module";
const [packages, gateway, cut] = process.argv.slice(2);
const Stripe = createRequire(`${packages}/`)("stripe");

async function pay(key, amount, at = gateway) {
  const { hostname: host, port } = new URL(at);
  const stripe = new Stripe("sk_test_1", { host, port, protocol: "http", maxNetworkRetries: 2, telemetry: false });
  try {
    const charge = await stripe.charges.create({ amount, currency: "eur", source: "tok_visa" }, { idempotencyKey: key });
    return { id: charge.id };
  } catch (error) {
    return { class: error.type, status: error.statusCode, code: error.code, text: error.message };
  }
}

console.log(JSON.stringify({
  replay: [await pay("order-1", 1000), await pay("order-1", 1000)],
  reused: await pay("order-1", 9900),
  unknown: [await pay("order-2", 1300), await pay("order-2", 1300)],
  dropped: await pay("order-3", 1400, cut),
}));
// The library keeps its connections open, and with them the process.
process.exit(0);
