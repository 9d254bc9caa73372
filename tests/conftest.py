"""What every test of the project shares: property-based tests are judged by results, never by time."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "clew",
    # A loaded machine is no defect: neither a slow example nor a slow generator fails a test.
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    # A failure in CI prints what repeats it.
    print_blob=True,
)
settings.load_profile("clew")
