"""Settings of the Django services."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from django.conf import settings  # noqa: E402

HERE = os.environ["DIRECTORY"]


def configure(**more):
    settings.configure(
        SECRET_KEY="of no use outside of this check",
        ALLOWED_HOSTS=["*"],
        ROOT_URLCONF="django_urls",
        APPEND_SLASH=False,
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": f"{HERE}/keys.db", "OPTIONS": {"timeout": 20}}},
        CACHES={
            "default": {
                "BACKEND": "django.core.cache.backends.redis.RedisCache",
                "LOCATION": os.environ["REDIS"],
            }
        },
        REST_FRAMEWORK={"DEFAULT_AUTHENTICATION_CLASSES": [], "DEFAULT_PERMISSION_CLASSES": [], "UNAUTHENTICATED_USER": None},
        **more,
    )
    import django

    django.setup()
