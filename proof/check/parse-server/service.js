// Parse Server, a whole application, with its idempotency switched on for objects; on PostgreSQL.
const { createRequire } = require('module');
const installed = createRequire(process.env.PACKAGES + '/');
const express = installed('express');
const { ParseServer } = installed('parse-server');

// Triggers that slow a save down: a part of X-Delay before the object is stored, the rest before the answer.
const pause = (request, part) => new Promise((done) => setTimeout(done, Number(request.headers['x-delay'] ?? 0) * part));
const cloud = (Parse) => {
  Parse.Cloud.beforeSave('Payment', (request) => pause(request, 1 / 4));
  Parse.Cloud.afterSave('Payment', (request) => pause(request, 3 / 4));
};

const server = new ParseServer({
  cloud,
  databaseURI: process.env.POSTGRES,
  appId: 'shop',
  masterKey: 'master',
  serverURL: `http://127.0.0.1:${process.env.PORT}`,
  allowClientClassCreation: true,
  idempotencyOptions: { paths: ['classes/.*'], ttl: 3600 },
  logLevel: 'error',
  silent: true,
});
server.start().then(() => {
  const app = express();
  app.get('/up', (_, response) => response.send('ok'));
  app.use('/', server.app);
  app.listen(Number(process.env.PORT), '127.0.0.1');
});
