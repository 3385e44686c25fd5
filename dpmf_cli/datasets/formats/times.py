"""Reads points in time from text: seconds since 1970, or a date of ISO 8601."""

from datetime import UTC, datetime


def seconds(text: str) -> float:
    """Returns seconds since 1970-01-01 UTC, from a number of seconds or a date of ISO 8601 (UTC if it has no zone).

    Raises ValueError for any other text.
    """
    try:
        if "_" not in text:
            return float(text)
    except ValueError:
        pass
    moment = datetime.fromisoformat(text.strip())
    try:
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except OverflowError as error:  # a zone that leads before the year 1
        raise ValueError(str(error)) from None
