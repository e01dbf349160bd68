// The payment that every service in JavaScript makes: the effect is a line in a file, with the request's reference.
const fs = require('fs');

const accounts = { 'Bearer alice': 'alice', 'Bearer bob': 'bob' };
const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

exports.pay = async (headers, body) => {
  if (!accounts[headers.authorization]) return { status: 401, body: { error: 'who are you?' } };
  if (typeof body?.amount !== 'number' || typeof body?.reference !== 'string') {
    return { status: 422, body: { error: 'amount and reference are required' } };
  }
  const delay = Number(headers['x-delay'] ?? 10);
  await pause(delay / 4);
  fs.appendFileSync(process.env.LEDGER, body.reference + '\n');
  const number = fs.readFileSync(process.env.LEDGER, 'utf8').trim().split('\n').length;
  await pause((delay * 3) / 4);
  if (headers['x-fail']) return { status: 500, body: { error: 'the mail could not be sent' } };
  const payment = { id: `pay_${number}`, amount: body.amount, reference: body.reference };
  return { status: 201, body: payment, location: `/payments/${payment.id}` };
};
