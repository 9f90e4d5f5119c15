"""LongProc's demonstrations, line by line and byte for byte.

Source: princeton-pli/LongProc at 78e873ae395e42625fba7942bbb92713de08b2a6: longproc/longproc_data.py,
longproc/countdown_evaluator.py and longproc/travel_planning_evaluator.py. Licence: Apache-2.0.

The tasks' own templates are the files `prompts.yaml` of the repository's data; they are read from there.
"""

# fmt: off
COUNTDOWN_EXAMPLES = (([40, 19, 23, 7], 29), ([9, 16, 6, 18], 12))
COUNTDOWN_EXAMPLE = "# Example\nNumbers: {numbers}\nTarget: {target}\n\n{demonstration}"
COUNTDOWN_SEARCH = "# Search Procedure"
COUNTDOWN_DEMONSTRATION = "# Search Procedure\n{search}\n\nNow we have found the target, let's trace back the solution:\nFinal step: {solution[2]}\nThe step before: {solution[1]}\nThe first step: {solution[0]}\n\nOutput the solution in the required format:\n<Solution>\n{solution[0]}\n{solution[1]}\n{solution[2]}\n</Solution>\n"
COUNTDOWN_FOUND = "Now we have found the target"
COUNTDOWN_START = "Initial number set: {numbers}, target: {target}. Options for choosing two numbers: {pairs}."
COUNTDOWN_PICK = "Pick two numbers ({a}, {b}) (numbers left: {left}). Try possible operations."
COUNTDOWN_ADD = "Try {equation}. Add {result} to the number set. Current number set: {numbers}, target: {target}"
COUNTDOWN_PAIRS = ". Options for choosing two numbers: {pairs}."
COUNTDOWN_LAST_TWO = ", just two numbers left."
COUNTDOWN_INVALID = "Try {equation}. drop this branch."
COUNTDOWN_DECIMAL = "Try {equation}. {result:.1f} is a decimal, drop this branch."
COUNTDOWN_TOO_LARGE = "Try {equation}. {result} exceeds the maximum intermediate result, drop this branch."
COUNTDOWN_HIT = "Try {equation}. Evaluate {result} == {target}, target found!"
COUNTDOWN_MISS = "Try {equation}. Evaluate {result} != {target}, drop this branch."

TRAVEL_EXAMPLE = "# Example\n{problem}\n\n{solution}"
TRAVEL_FORMAT = "Output the plan in the required format:"
TRAVEL_SOLVING = "<Solving Procedure>"
TRAVEL_DEMONSTRATION = "<Solving Procedure>\n{procedure}\n</Solving Procedure>\n\nOutput the plan in the required format:\n<Plan>\n{plan}\n</Plan>"
TRAVEL_START = "the starting point"
TRAVEL_READ = "Read the requirements and identify the cities that have fixed schedules and the cities that need to be arranged."
TRAVEL_CITY = "* City: {city}, Duration: {num_days} days."
TRAVEL_CITY_FIXED = "* City: {city}, Duration: {num_days} days, Fixed Schedule: Day {start_day} - {end_day}."
TRAVEL_FIXED_HEADING = "Cities that have fixed schedules (sorted by their arrival days):"
TRAVEL_FIXED = "* City: {city}, Fixed Schedule: Day {start_day} - {end_day}."
TRAVEL_FIXED_NONE = "Cities that have fixed schedules: None."
TRAVEL_FREE_HEADING = "Cities needing arrangement:"
TRAVEL_FREE_NONE = "Cities needing arrangement: None."
TRAVEL_DAY = "Current day: {day}. Current plan: [{cities}]."
TRAVEL_COMPLETE = "All {count} cities are arranged. Complete plan is found!"
TRAVEL_CHECK_FIXED = "Check whether the city with an arrival day of Day {day} - is fixed."
TRAVEL_IS_FIXED = "Yes. The city with an arrival day of Day {day} - is fixed: {city}."
TRAVEL_IS_FREE = "No. Consider possible options from cities needing arrangement: [{cities}] and explore these options in order."
TRAVEL_TRY = "Try arranging to visit {city} from Day {day}. Duration: {days} days. Schedule: Day {day} - {last}."
TRAVEL_CHECK_FLIGHT = "Check for direct flight from {origin} to {city}."
TRAVEL_NO_FLIGHT = "No. Drop this branch."
TRAVEL_FLIGHT = "Yes."
TRAVEL_CHECK_NEXT = "Check whether this arrangement is compatible with the next fixed schedule after Day {day}: {city} (Day {start_day} - {end_day})."
TRAVEL_CHECK_NO_NEXT = "Check whether this arrangement is compatible with the next fixed schedule after Day {day}: None."
TRAVEL_NO_NEXT = "No following fixed schedules. This arrangement is compatible."
TRAVEL_LATE = "The departure day of {city} is Day {end}. The arrival day of {next_city} is Day {start}. Day {end} is later than (>) Day {start}. This arrangement is incompatible. Drop this branch."
TRAVEL_IN_TIME = "The departure day of {city} is Day {end}. The arrival day of {next_city} is Day {start}. Day {end} is not later than (<=) Day {start}. This arrangement is compatible."
TRAVEL_FEASIBLE = "This arrangement is feasible for now. Continue to arrange the rest of the plan."
TRAVEL_FAIL = "Fail to arrange any option on day {day} in the current arrangement. Drop this branch."
TRAVEL_FIRST_STOP = "**Day {start}-{end}:** Arriving in {city} and visit {city} for {days} days."
TRAVEL_STOP = "**Day {start}-{end}:** Visit {city} for {days} days."
TRAVEL_FLY = "**Day {end}:** Fly from {city} to {next_city}."
# fmt: on
