// express-idempotency with its defaults, and a handler that asks isHit(), as its README shows.
const { createRequire } = require('module');
const { pay } = require('../payments.js');
const installed = createRequire(process.env.PACKAGES + '/');
const express = installed('express');
const { idempotency, getSharedIdempotencyService } = installed('express-idempotency');

const app = express();
app.use(express.json());
app.post('*', idempotency());
const handle = async (request, response) => {
  if (getSharedIdempotencyService().isHit(request)) return;
  const { status, body, location } = await pay(request.headers, request.body);
  if (location) response.set('Location', location);
  response.status(status).send(body);
};
app.post('/payments', handle);
app.post('/refunds', handle);
app.get('/health', (_, response) => response.send('ok'));
app.listen(Number(process.env.PORT), '127.0.0.1');
