"""django-idempotency-key with its cache storage on Redis."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import django_service  # noqa: E402

django_service.configure(
    MIDDLEWARE=["idempotency_key.middleware.IdempotencyKeyMiddleware"],
    IDEMPOTENCY_KEY={
        "STORAGE": {"CLASS": "idempotency_key.storage.CacheKeyStorage"},
        # The stored status for a retry, instead of 409.
        "CONFLICT_STATUS_CODE": None,
    },
)

from django.core.wsgi import get_wsgi_application  # noqa: E402

app = get_wsgi_application()
