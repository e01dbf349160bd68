// express-idempotency with its defaults, and a handler that does not ask isHit().
const { createRequire } = require('module');
const { pay } = require('../payments.js');
const installed = createRequire(process.env.PACKAGES + '/');
const express = installed('express');
const { idempotency } = installed('express-idempotency');

const app = express();
app.use(express.json());
app.post('*', idempotency());
const handle = (request, response, next) => {
  pay(request.headers, request.body)
    .then(({ status, body, location }) => {
      if (location) response.set('Location', location);
      response.status(status).send(body);
    })
    // A replay was sent already: Express is told.
    .catch(next);
};
app.post('/payments', handle);
app.post('/refunds', handle);
app.get('/health', (_, response) => response.send('ok'));
app.listen(Number(process.env.PORT), '127.0.0.1');
