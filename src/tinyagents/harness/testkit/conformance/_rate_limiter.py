"""What a rate limiter must do, as tests."""

import threading

import pytest

from ...errors import LimitExceededError
from ...retry import RateLimiter


class RateLimiterConformance:
    """The tests of a rate limiter. Inherit, and say in :meth:`limiter` how one is made.

    They take nothing that comes back with time, so that neither waits nor a clock are needed.
    """

    def limiter(self, tokens: int) -> RateLimiter:
        """Return a new limiter that has room for so many tokens at once, and never for more.

        What comes back in a second must be less than a tenth of a token, and more than nothing.
        """
        raise TypeError(f"`{type(self).__name__}` has no `limiter`: say how one is made")

    def test_what_is_there_may_be_taken_at_once(self) -> None:
        """Room for a burst is given without a wait."""
        limiter = self.limiter(3)
        assert [limiter.reserve(2), limiter.reserve()] == [0, 0], (
            "a call waits though there is room"
        )

    def test_who_comes_later_waits_longer(self) -> None:
        """A call that is held back has its place in a line."""
        limiter = self.limiter(1)
        limiter.reserve()
        first, second = limiter.reserve(), limiter.reserve()
        assert first > 0, "a call may be made though there is no room"
        assert second > first, "a call that came later is served first, or both at once"

    def test_what_is_given_back_may_be_taken_again(self) -> None:
        """A call that was not made leaves its room to another."""
        limiter = self.limiter(1)
        limiter.reserve()
        limiter.give_back()
        assert limiter.reserve() == 0, "a place that was given back is lost"

    def test_a_place_in_the_line_can_be_given_back(self) -> None:
        """A call that does not wait any longer makes the wait of those to come shorter."""
        limiter = self.limiter(1)
        limiter.reserve()
        waits = limiter.reserve()
        limiter.give_back()
        assert limiter.reserve() <= waits, "a call that was given up still holds others back"

    def test_giving_back_makes_no_room_that_was_not_there(self) -> None:
        """No more than the limiter's own size is ever there."""
        limiter = self.limiter(1)
        limiter.give_back()
        assert [limiter.reserve(), limiter.reserve() > 0] == [0, True], (
            "there is more than at first"
        )

    def test_what_can_never_be_had_is_refused_and_takes_nothing(self) -> None:
        """A call that asks for too much fails, and does not wait for ever."""
        limiter = self.limiter(2)
        with pytest.raises(LimitExceededError):
            limiter.reserve(3)
        assert limiter.reserve(2) == 0, "a call that was refused has taken tokens"

    def test_threads_never_take_the_same_token(self) -> None:
        """It may be asked from several threads at once."""
        limiter, waits = self.limiter(50), list[float]()
        start = threading.Barrier(4)

        def take() -> None:
            start.wait()
            waits.extend(limiter.reserve() for _ in range(25))

        threads = [threading.Thread(target=take) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        free = sum(seconds == 0 for seconds in waits)
        assert (len(waits), free) == (100, 50), (
            f"{free} calls were let pass, and there was room for 50"
        )
