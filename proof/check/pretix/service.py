"""pretix, a whole application: an organizer with an event and a product, and the token of a team for the API. Prints nothing."""

import os
import sys
from pathlib import Path

HERE = Path(os.environ["DIRECTORY"])
CONFIG = HERE / "pretix.cfg"
PORT = os.environ["PORT"]
CONFIG.write_text(
    f"""[pretix]
instance_name=check
url=http://127.0.0.1:{PORT}
datadir={HERE}/data
trust_x_forwarded_for=off
[database]
backend=sqlite3
name={HERE}/pretix.db
[django]
secret=of-no-use-outside-of-this-check
"""
)
os.environ["PRETIX_CONFIG_FILE"] = str(CONFIG)
os.environ["DJANGO_SETTINGS_MODULE"] = "pretix.settings"
(HERE / "data").mkdir(exist_ok=True)

import django  # noqa: E402

django.setup()

from django.core.management import call_command  # noqa: E402
from django.core.wsgi import get_wsgi_application  # noqa: E402


def prepare():
    from datetime import datetime, timezone

    from django_scopes import scopes_disabled
    from pretix.base.models import Event, Item, Organizer, Quota, Team, TeamAPIToken

    call_command("migrate", verbosity=0)
    with scopes_disabled():
        organizer = Organizer.objects.create(name="Shop", slug="shop")
        event = Event.objects.create(
            organizer=organizer,
            name="Show",
            slug="show",
            date_from=datetime(2030, 1, 1, tzinfo=timezone.utc),
            currency="EUR",
            live=True,
            plugins="pretix.plugins.banktransfer",
        )
        item = Item.objects.create(event=event, name="Ticket", default_price=10)
        quota = Quota.objects.create(event=event, name="all", size=None)
        quota.items.add(item)
        for name in ["alice", "bob"]:
            fields = {"organizer": organizer, "name": name, "all_events": True}
            known = {field.name for field in Team._meta.get_fields()}
            for right in ["all_event_permissions", "all_organizer_permissions", "can_view_orders", "can_change_orders", "can_change_event_settings"]:
                if right in known:
                    fields[right] = True
            team = Team.objects.create(**fields)
            TeamAPIToken.objects.create(team=team, name=name, token=name * 8)
        (HERE / "item").write_text(str(item.pk))


if "prepare" in sys.argv:
    prepare()
else:
    app = get_wsgi_application()
