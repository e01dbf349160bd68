"""Payments in Django REST framework: the view that both Django packages here stand in front of."""

from django.http import HttpResponse
from django.urls import path
from rest_framework.decorators import api_view
from rest_framework.response import Response

from payments import ACCOUNTS, Failed, is_valid, pay


@api_view(["POST"])
def create_payment(request):
    if request.headers.get("Authorization") not in ACCOUNTS:
        return Response({"detail": "who are you?"}, 401)
    if not is_valid(request.data):
        return Response({"detail": "amount and reference are required"}, 422)
    try:
        payment = pay(request.data, {name.lower(): value for name, value in request.headers.items()})
    except Failed:
        return Response({"error": "the mail could not be sent"}, 500)
    return Response(payment, 201, headers={"Location": f"/payments/{payment['id']}"})


def health(_):
    return HttpResponse()


urlpatterns = [path("payments", create_payment), path("refunds", create_payment), path("health", health)]
