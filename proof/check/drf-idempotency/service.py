"""drf-idempotency with its database backend."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import django_service  # noqa: E402

django_service.configure(
    INSTALLED_APPS=["drf_idempotency"],
    MIDDLEWARE=["drf_idempotency.middleware.IdempotencyMiddleware"],
    IDEMPOTENCY={"BACKEND": "drf_idempotency.backends.database.DatabaseBackend"},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)

from django.core.management import call_command  # noqa: E402
from django.core.wsgi import get_wsgi_application  # noqa: E402

call_command("migrate", verbosity=0)
app = get_wsgi_application()
