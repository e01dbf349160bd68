import { createServer } from "node:http";

let payments = 0;

createServer(async (request, response) => {
  let body = "";
  for await (const chunk of request) body += chunk;
  const { amount } = JSON.parse(body || "{}");
  payments += 1; // the effect that must happen once
  console.log(`payment ${payments}: ${amount}`);
  response.writeHead(201, { "Content-Type": "application/json" });
  response.end(JSON.stringify({ id: `pay_${payments}`, amount }));
}).listen(3000, "127.0.0.1");
