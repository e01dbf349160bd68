"""Payments in FastAPI: the handler that every FastAPI middleware here stands in front of. Callers are authenticated by a dependency."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from fastapi import Depends, FastAPI, Header, HTTPException, Request  # noqa: E402
from fastapi.responses import JSONResponse  # noqa: E402

from payments import ACCOUNTS, Failed, is_valid, pay_async  # noqa: E402


def account(authorization: str = Header("")):
    if authorization not in ACCOUNTS:
        raise HTTPException(401)
    return ACCOUNTS[authorization]


async def create_payment(request: Request):
    try:
        body = await request.json()
    except ValueError:
        raise HTTPException(400)
    if not is_valid(body):
        raise HTTPException(422)
    try:
        payment = await pay_async(body, request.headers)
    except Failed:
        return JSONResponse({"error": "the mail could not be sent"}, 500)
    return JSONResponse(payment, 201, headers={"Location": f"/payments/{payment['id']}"})


def add_routes(app: FastAPI, decorated=create_payment):
    for path in ["/payments", "/refunds"]:
        app.post(path, dependencies=[Depends(account)])(decorated)
    app.get("/health")(lambda: {})
    return app
