"""Parts of `tacit bench peers-utility`."""
