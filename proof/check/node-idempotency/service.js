// @node-idempotency/nestjs on Redis, with its defaults.
const { createRequire } = require('module');
const { pay } = require('../payments.js');
const installed = createRequire(process.env.PACKAGES + '/');
installed('reflect-metadata');
const { NestFactory } = installed('@nestjs/core');
const { Controller, Get, Post, Req, Res, Module, HttpException } = installed('@nestjs/common');
const { NodeIdempotencyModule, Idempotent, StorageAdapterEnum } = installed('@node-idempotency/nestjs');

const decorate = (target, name, ...decorators) => {
  const property = Object.getOwnPropertyDescriptor(target, name);
  for (const decorator of decorators) decorator(target, name, property);
};

class Payments {
  async pay(request, response) {
    const { status, body, location } = await pay(request.headers, request.body);
    if (status >= 400) throw new HttpException(body, status);
    if (location) response.set('Location', location);
    response.status(status);
    return body;
  }
  health() {
    return 'ok';
  }
}
Controller()(Payments);
Idempotent({})(Payments);
Req()(Payments.prototype, 'pay', 0);
Res({ passthrough: true })(Payments.prototype, 'pay', 1);
decorate(Payments.prototype, 'pay', Post(['payments', 'refunds']));
decorate(Payments.prototype, 'health', Get('health'));

class App {}
Module({
  imports: [NodeIdempotencyModule.forRootAsync({ storage: { adapter: StorageAdapterEnum.redis, options: { url: process.env.REDIS } } })],
  controllers: [Payments],
})(App);

NestFactory.create(App, { logger: ['error'] }).then((app) => app.listen(Number(process.env.PORT), '127.0.0.1'));
