"""Travel planning: writes the search that prompts demonstrate and answers should follow, and checks a model's answer.

Source: princeton-pli/LongProc at 78e873a, longproc/travel_planning_evaluator.py. It reads plans as NATURAL PLAN
does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

from helm_longctx.benchmarks.longproc import prompts
from helm_longctx.tasks.words import english_words

_Constraint = Mapping[str, Any]

_TOTAL_DAYS = re.compile(r"European cities for (\d+) days")
_DAYS = re.compile(r"(?<!\d)\d+-(\d+)")
_DAY = re.compile(r"Day (\d+)")
_ROUTE = re.compile(r"(?=from (\w+) to (\w+))")


@dataclass(frozen=True)
class _Stop:
    """A stay in a city. It includes the days `start` and `end`."""

    city: str
    days: int
    start: int
    end: int


@dataclass(frozen=True)
class Trip:
    """The conditions of a plan.

    Args:
        constraints: as in the official files: `type` "duration" (`city`, `num_days`) or "fixed" (`city`, `start_day`,
            `end_day`); a fixed one comes directly after the duration of its city.
        flights: pairs of cities.
    """

    count: int
    constraints: Sequence[_Constraint]
    flights: frozenset[tuple[str, str]]

    @staticmethod
    def of(row: Mapping[str, Any]) -> Trip:
        """Make the trip of an official row.

        Raises:
            LookupError, TypeError, ValueError: the row is malformed.
        """
        flights = frozenset((origin, city) for origin, city in row["connected_cities"])
        return Trip(
            count=row["num_cities"],
            constraints=row["constraints"],
            flights=flights,
        )

    @cached_property
    def fixed_stays(self) -> list[_Constraint]:
        """The constraints with fixed days, in the order of their first days."""
        stays = []
        for c in self.constraints:
            if c["type"] == "fixed":
                stays.append(c)
        return sorted(stays, key=lambda c: int(c["start_day"]))

    @cached_property
    def free(self) -> list[_Constraint]:
        """The durations of cities without fixed days, in the order of the constraints."""
        fixed = set()
        for constraint in self.fixed_stays:
            fixed.add(constraint["city"])
        durations = []
        for constraint in self.constraints:
            if constraint["type"] == "duration" and constraint["city"] not in fixed:
                durations.append(constraint)
        return durations


def demonstrate(trip: Trip) -> str:
    """Return the text of the procedure and of the first plan that it finds.

    Raises:
        LookupError, TypeError, ValueError: the trip is malformed or has no plan.
    """
    search = _Search(trip, [*_summary(trip)])
    plan = search.arrange(1, [], trip.free)
    if plan is None:
        raise ValueError("no plan satisfies the constraints")
    return prompts.TRAVEL_DEMONSTRATION.format(
        procedure="\n".join(search.log), plan=format_plan(plan)
    )


def format_plan(plan: Sequence[_Stop]) -> str:
    """Write a plan in the required format."""
    lines = []
    for number, (stop, following) in enumerate(pairwise([*plan, None])):
        assert stop  # only the last is None
        if number:
            template = prompts.TRAVEL_STOP
        else:
            template = prompts.TRAVEL_FIRST_STOP
        lines.append(
            template.format(
                start=stop.start,
                end=stop.end,
                city=stop.city,
                days=stop.days,
            )
        )
        if following:
            lines.append(
                prompts.TRAVEL_FLY.format(
                    end=stop.end,
                    city=stop.city,
                    next_city=following.city,
                )
            )
    return "\n".join(lines)


def _summary(trip: Trip) -> Iterator[str]:
    """Yield the first lines of the procedure: all cities, then those with fixed days, then those without."""
    days = {}
    for constraint in trip.fixed_stays:
        days[constraint["city"]] = constraint
    yield prompts.TRAVEL_READ
    for constraint in trip.constraints:
        if constraint["type"] != "fixed":
            city = constraint["city"]
            if city in days:
                template = prompts.TRAVEL_CITY_FIXED
            else:
                template = prompts.TRAVEL_CITY
            yield template.format(**{**days.get(city, {}), **constraint})
    yield ""
    yield (
        prompts.TRAVEL_FIXED_HEADING if trip.fixed_stays else prompts.TRAVEL_FIXED_NONE
    )
    for constraint in trip.fixed_stays:
        yield prompts.TRAVEL_FIXED.format(**constraint)
    yield ""
    yield prompts.TRAVEL_FREE_HEADING if trip.free else prompts.TRAVEL_FREE_NONE
    for constraint in trip.free:
        yield prompts.TRAVEL_CITY.format(**constraint)
    yield ""


@dataclass
class _Search:
    """A depth-first search that writes down every step."""

    trip: Trip
    log: list[str] = field(default_factory=list)

    def arrange(
        self,
        day: int,
        plan: list[_Stop],
        free: Sequence[_Constraint],
    ) -> list[_Stop] | None:
        """Complete a plan from a day on. Returns None if that is impossible.

        Args:
            free: cities without fixed days that are not in the plan.
        """
        depth = len(plan) * 2
        visited = ", ".join(stop.city for stop in plan)
        self._write(depth, prompts.TRAVEL_DAY, day=day, cities=visited)
        if len(plan) == self.trip.count:
            self._write(depth, prompts.TRAVEL_COMPLETE, count=self.trip.count)
            return plan
        self._write(depth, prompts.TRAVEL_CHECK_FIXED, day=day)
        fixed = next(
            (stay for stay in self.trip.fixed_stays if stay["start_day"] == day), None
        )
        if fixed:
            self._write(depth, prompts.TRAVEL_IS_FIXED, day=day, city=fixed["city"])
            stops = [
                _Stop(
                    city=fixed["city"],
                    days=fixed["end_day"] - day + 1,
                    start=day,
                    end=fixed["end_day"],
                )
            ]
        else:
            possible = ", ".join(city["city"] for city in free)
            self._write(depth, prompts.TRAVEL_IS_FREE, cities=possible)
            stops = []
            for city in free:
                days = city["num_days"]
                stops.append(
                    _Stop(
                        city=city["city"],
                        days=days,
                        start=day,
                        end=day + days - 1,
                    )
                )
        for stop in stops:
            if self._is_feasible(stop, plan, depth + 1):
                left = [city for city in free if city["city"] != stop.city]
                # The day of a flight belongs to both cities, so the next stay begins on the last day of this one.
                complete = self.arrange(stop.end, [*plan, stop], left)
                if complete is not None:
                    return complete
        self._write(depth + 1, prompts.TRAVEL_FAIL, day=day)
        return None

    def _is_feasible(
        self,
        stop: _Stop,
        plan: Sequence[_Stop],
        depth: int,
    ) -> bool:
        """Return whether there is a flight to the stop, and the stop ends before the next fixed days begin."""
        self._write(
            depth,
            prompts.TRAVEL_TRY,
            city=stop.city,
            day=stop.start,
            days=stop.days,
            last=stop.end,
        )
        origin = plan[-1].city if plan else prompts.TRAVEL_START
        self._write(depth, prompts.TRAVEL_CHECK_FLIGHT, origin=origin, city=stop.city)
        if plan and (origin, stop.city) not in self.trip.flights:
            self._write(depth, prompts.TRAVEL_NO_FLIGHT)
            return False
        self._write(depth, prompts.TRAVEL_FLIGHT)
        following = next(
            (city for city in self.trip.fixed_stays if city["start_day"] > stop.start),
            None,
        )
        if following:
            self._write(depth, prompts.TRAVEL_CHECK_NEXT, day=stop.start, **following)
            start = following["start_day"]
            next_city = following["city"]
            is_late: bool = start < stop.end
            if is_late:
                template = prompts.TRAVEL_LATE
            else:
                template = prompts.TRAVEL_IN_TIME
            self._write(
                depth,
                template,
                city=stop.city,
                end=stop.end,
                next_city=next_city,
                start=start,
            )
            if is_late:
                return False
        else:
            self._write(depth, prompts.TRAVEL_CHECK_NO_NEXT, day=stop.start)
            self._write(depth, prompts.TRAVEL_NO_NEXT)
        self._write(depth, prompts.TRAVEL_FEASIBLE)
        return True

    def _write(self, depth: int, template: str, **values: object) -> None:
        indent = " " * depth + "|- " if depth else ""
        self.log.append(indent + template.format(**values))


def is_plan(cities: str, durations: str, text: str) -> bool:
    """Return whether a plan begins with the expected cities and days.

    Args:
        cities: the expected cities, joined by `**`.
        durations: the days in each, joined by `**`.
        text: the model's plan.
    """
    expected = [city for city in cities.split("**") if city]
    days = []
    for count in durations.split("**"):
        if count:
            days.append(int(count))
    # Only the beginning counts: further cities do no harm (travel_planning_evaluator.py,
    # evaluate_travel_plan_solution).
    plan = read_plan(text)[: len(expected)]
    return bool(expected) and plan == list(zip(expected, days, strict=False))


def find_flight(line: str) -> tuple[str, ...] | None:
    """Return day, origin and destination of a line, as the official pattern `.*Day (\\d+).*from (\\w+) to (\\w+)` does.

    That takes the last route and the last day before it; its time grows with the cube of a line's length.
    """
    routes = [*_ROUTE.finditer(line)]
    if not routes:
        return None
    days = [*_DAY.finditer(line, 0, routes[-1].start())]
    if days:
        return (days[-1][1], *routes[-1].groups())
    return None


def read_plan(text: str) -> list[tuple[str, int]]:
    """Read the cities and days of a plan from its lines about flights.

    The result is empty if no line has a flight or no line has days. After a line `European cities for N days`, reading
    stops at the line whose last day is N.
    """
    flights: list[tuple[str, ...]] = []
    total = last_day = None
    for line in text.split("\n"):
        if announced := _TOTAL_DAYS.search(line):
            total = int(announced[1])
        if days := _DAYS.search(line):
            last_day = int(days[1])
            if last_day == total:
                break
        if flight := find_flight(line):
            flights.append(flight)
    if last_day is None or not flights:
        return []
    cities = [flights[0][1], *(city for _, _, city in flights)]
    # A stay lasts from one flight to the next; both days count.
    turns = [1, *(int(day) for day, _, _ in flights), last_day]
    stays = zip(cities, pairwise(turns), strict=True)
    days_of_cities = []
    for city, (start, end) in stays:
        days_of_cities.append((city, end - start + 1))
    return days_of_cities


def procedure_accuracy(output: str, expected: str) -> float:
    """Measure how far an output follows the expected procedure: the index of the last compared line over their number.

    A line agrees if it contains the expected one, ignoring case, punctuation and articles. As in the official code, an
    output that agrees to its end has (n - 1) / n.
    """
    _, _, procedure = expected.replace(prompts.TRAVEL_FORMAT, "").partition(
        prompts.TRAVEL_SOLVING
    )
    procedure = procedure.split(prompts.TRAVEL_SOLVING)[0]
    expected_lines = _lines(prompts.TRAVEL_SOLVING + procedure)
    output = output.replace(prompts.TRAVEL_FORMAT, "")
    if prompts.TRAVEL_SOLVING in output:
        output = prompts.TRAVEL_SOLVING + output.split(prompts.TRAVEL_SOLVING)[1]
    index = 0
    for index, (line, expected_line) in enumerate(  # noqa: B007
        zip(_lines(output), expected_lines, strict=False)
    ):
        # A line only has to contain the expected one, so a model may indent or mark its lines.
        if expected_line not in line:
            break
    return index / len(expected_lines)


def _lines(text: str) -> list[str]:
    """Return the lines that are not blank, in lower case, without punctuation, articles and extra white space."""
    lines = []
    for line in text.strip().split("\n"):
        if line.strip():
            lines.append(" ".join(english_words(line)))
    return lines
