"""Facts and questions that share no content word, so that a search for the question's words does not find the fact."""

ASSOCIATIONS = (
    ("keeps hives behind the barn", "could sell you honey"),
    ("mends boots in the arcade", "is a cobbler"),
    ("tunes pianos at the opera", "works with musical instruments"),
    ("pulls teeth on Tuesdays", "is a dentist"),
    ("steers gliders over the valley", "is a pilot"),
    ("bakes loaves before dawn", "makes bread"),
    ("milks forty goats", "could give you cheese"),
    ("paints portraits in oil", "is an artist"),
    ("delivers letters by bicycle", "brings the post"),
    ("stitches gowns for brides", "is a dressmaker"),
    ("takes the ferry across the strait each hour", "is a ship's captain"),
    ("grinds lenses for spectacles", "helps people with poor eyesight"),
    ("climbs chimneys with a brush", "removes soot"),
    ("draws maps of the seabed", "is a cartographer"),
    ("hears cases at the court", "is a judge"),
    ("translates poems from Finnish", "reads a Nordic language"),
    ("shoes horses at the forge", "is a blacksmith"),
    ("raises tulips under glass", "is a gardener"),
    ("opens watches under a loupe", "repairs clocks"),
    ("digs wells in dry villages", "helps others find water"),
    ("pulls swimmers from the waves", "is a lifeguard"),
    ("follows comets through a telescope", "is an astronomer"),
    ("writes crime novels", "is an author"),
    ("sets broken bones", "is a surgeon"),
)
"""Each pair is what is said about a person, and what is asked."""
