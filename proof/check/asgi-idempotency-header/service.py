"""asgi-idempotency-header on Redis."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from fastapi import FastAPI  # noqa: E402
from idempotency_header_middleware import IdempotencyHeaderMiddleware  # noqa: E402
from idempotency_header_middleware.backends import RedisBackend  # noqa: E402
from redis.asyncio import Redis  # noqa: E402

from fastapi_service import add_routes  # noqa: E402

app = FastAPI()
redis = Redis.from_url(os.environ["REDIS"], decode_responses=True)
app.add_middleware(IdempotencyHeaderMiddleware, backend=RedisBackend(redis))
add_routes(app)
