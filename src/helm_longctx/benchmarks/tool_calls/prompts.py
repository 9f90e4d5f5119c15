"""The prompt of tool calls: definitions, log and question. It is our own."""

from helm_longctx.tasks import Template

NO_CALL = "NO_CALL"
"""What an answer says where no call is right."""

TEMPLATE = Template(
    "You are an agent. These are your tools, one definition in each line:\n\n{tools}\n\n"
    "This is your log so far. Rules of the user in it hold from then on. A tool that was replaced, or switched off and"
    " not on again, must not be called.\n\n{context}\n\n{question}\n\n"
    "{form} Give optional arguments only where a rule demands them. If no tool may be called for it, reply only"
    f" {NO_CALL}.",
    "",
)

FORM = (
    "Reply only with the one call that does this, as a JSON object with the fields name"
    " and arguments."
)
"""How an answer has to look that is a text."""
