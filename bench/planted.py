def drop_middle(messages):
    count = len(messages)
    return messages[: count * 15 // 100] + messages[count * 60 // 100 :]
