"""fastapi-idempotency with its persistent store, scoped by account, as its README recommends for APIs with a login."""

import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from fastapi import FastAPI  # noqa: E402
from fastapi_idempotency import IdempotencyMiddleware  # noqa: E402
from fastapi_idempotency.stores.tortoise import TortoiseStore  # noqa: E402
from tortoise import Tortoise  # noqa: E402

from fastapi_service import add_routes  # noqa: E402


@asynccontextmanager
async def lifespan(_):
    await Tortoise.init(
        db_url=f"sqlite://{os.environ['DIRECTORY']}/keys.db",
        modules={"models": ["fastapi_idempotency.stores.tortoise"]},
        _enable_global_fallback=True,
    )
    await Tortoise.generate_schemas(safe=True)
    yield
    await Tortoise.close_connections()


app = FastAPI(lifespan=lifespan)
app.add_middleware(
    IdempotencyMiddleware,
    store=TortoiseStore(),
    scope=lambda request: request.headers.get("authorization", ""),
)
add_routes(app)
